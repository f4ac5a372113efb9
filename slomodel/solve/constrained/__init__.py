"""Minimisation subject to equations and inequalities: an augmented Lagrangian around `solve`."""
