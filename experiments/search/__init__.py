"""Search everything that was asked, thought, programmed, printed, shown and concluded: substrings, in any language."""
