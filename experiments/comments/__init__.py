"""Comments on a run and on its parts."""
