"""The MCP server: a few tools with which language models and their clients work here, using a personal token."""
