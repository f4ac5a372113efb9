"""Ranges of scalar functions, of their derivatives and of whole graphs over boxes; smoothness."""
