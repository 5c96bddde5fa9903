"""Spurious features: classifiers whose classes went with grounds, and what choosing units does for them."""
