"""Biases: what a run concluded of a class, as statements that are tested on the run's own images."""
