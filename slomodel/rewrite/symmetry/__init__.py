"""Symmetric sums, of which each distinct term is computed once and counted with a weight."""
