"""SymPy expressions to a Problem."""
