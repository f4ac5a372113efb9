"""Translation of SymPy expressions to a Problem."""
