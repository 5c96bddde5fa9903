"""Functions of words, after FIND: closeness to concepts, and relations by a rule with an exception."""
