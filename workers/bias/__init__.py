"""Biases: a run's conclusions about a class, as statements that are tested on the run's own images."""
