"""Sums over elements: derivatives of their functions over boxes, and rows of their arguments."""
