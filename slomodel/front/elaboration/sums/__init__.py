"""Sums and other reductions over indices and along axes."""
