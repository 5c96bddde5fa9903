"""Scenes of toys: words, places, pictures."""
