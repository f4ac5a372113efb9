"""Indices: index sets, index tables, slices, and sizes that are affine in dims."""
