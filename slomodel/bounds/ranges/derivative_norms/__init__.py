"""Norms of the first three derivatives of every node over a ball, through loops and averages."""
