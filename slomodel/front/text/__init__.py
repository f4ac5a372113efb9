"""The text of a model: parsing to a syntax tree, formatting, LaTeX."""
