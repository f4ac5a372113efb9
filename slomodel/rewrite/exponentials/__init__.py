"""Exponentials that overflow: their logarithms, sums and quotients, and limits of exponents."""
