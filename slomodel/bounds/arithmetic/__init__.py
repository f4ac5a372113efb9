"""Directed rounding, intervals and midpoint–radius numbers: all proofs about floating point."""
