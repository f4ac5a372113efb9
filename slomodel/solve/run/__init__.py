"""Algorithm 1: the epoch loop, what it records, writes and returns."""
