"""What keeps an installation whole over the years: looking whether it is, copies of it, and leaving out what is old."""
