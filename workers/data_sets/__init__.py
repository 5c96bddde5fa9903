"""Datasets that exemplars come from."""
