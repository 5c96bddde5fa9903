"""Blind two-way choices between labels."""
