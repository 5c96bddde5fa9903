"""The plug-in "synthetic:": neurons whose selectivity is known, on a detector."""
