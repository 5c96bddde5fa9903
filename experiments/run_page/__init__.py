"""The tabs of a run's page: what each shows, read from the rows and events of the run."""
