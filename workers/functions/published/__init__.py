"""FIND's published benchmark, read from a folder: its functions as a model's units."""
