"""Search directions, one file per direction, and the table of their names."""
