"""How far reviewers of a queue agree."""
