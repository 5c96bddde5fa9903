"""What people say to each other about a run and what is in it."""
