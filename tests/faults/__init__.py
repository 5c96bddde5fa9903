"""A campaign of faults: a whole installation whose parts are killed, stopped, cut off and starved under a sweep."""
