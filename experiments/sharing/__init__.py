"""One run or one study for somebody outside: links, and what is shown under them."""
