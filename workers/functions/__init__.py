"""Functions whose code is known, as systems to study: black boxes of numbers and of texts, and scores of answers."""
