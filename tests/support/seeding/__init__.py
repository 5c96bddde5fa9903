"""Made-up rows in any number, for measurements and demonstrations; see `__main__`."""
