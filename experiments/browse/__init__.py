"""Observations, experiments and images of all runs: filtered, sorted, and found quickly however many there are."""
