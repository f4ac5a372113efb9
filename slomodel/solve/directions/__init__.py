"""Search directions: one file a direction, and the table of their names."""
