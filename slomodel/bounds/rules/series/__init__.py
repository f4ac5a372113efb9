"""Polynomial objectives by homogeneous parts: majorants, products of matrices, sums of powers."""
