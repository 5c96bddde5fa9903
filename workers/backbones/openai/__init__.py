"""The backbone "openai": a vision-language model on any server with OpenAI's chat completions."""
