"""The MCP server: what language models and their clients do here, by a few tools, with a personal token."""
