"""Rounds that people write: drafts, what is sent, and who writes next."""
