"""One run for somebody outside: links, and what is shown under them."""
