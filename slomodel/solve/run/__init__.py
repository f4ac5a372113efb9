"""Algorithm 1: the epoch loop, its records, checkpoints and results."""
