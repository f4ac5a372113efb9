"""Data: files and user-supplied arrays, sizes, starts, and the flat vector of the variables."""
