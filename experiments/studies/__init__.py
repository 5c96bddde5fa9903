"""Studies: chosen units and runs with a title, a text and captions, read by link or as a folder of files."""
