"""Share links: one run or one study for readers without an account."""
