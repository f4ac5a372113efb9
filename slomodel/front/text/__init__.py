"""Model text to a syntax tree, with messages for what is no model."""
