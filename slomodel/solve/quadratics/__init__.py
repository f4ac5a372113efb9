"""Quadratic models of the objective, and their minimisation over a set."""
