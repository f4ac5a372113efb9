"""Construction of a Problem from the text of a model, or a SymPy expression, and data."""
