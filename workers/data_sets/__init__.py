"""Data sets that exemplars come from."""
