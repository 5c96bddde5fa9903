"""A model as layers of units, and what is known of each."""
