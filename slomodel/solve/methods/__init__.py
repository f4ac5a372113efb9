"""The subroutines of Algorithm 1, and the table of their names and options."""
