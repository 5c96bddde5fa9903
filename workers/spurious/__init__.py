"""Spurious features: classifiers whose classes are correlated with grounds, and the effect of selecting units."""
