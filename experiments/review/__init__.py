"""Review: queues of runs, reservations, the rubric, and who may see whose opinion."""
