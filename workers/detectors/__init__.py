"""Detectors: find named concepts in images."""
