"""The plug-in "synthetic:": neurons with known selectivity, computed from a detector."""
