"""Data to arrays and sizes, starts, and the flat vector of the variables."""
