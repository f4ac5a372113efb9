"""Directed rounding, intervals and midpoint-radius numbers: every proof about floating point."""
