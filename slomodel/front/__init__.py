"""From the text of a model, or a SymPy expression, and data to a Problem."""
