"""Ranges of scalar functions, of their derivatives and of graphs over boxes; smoothness."""
