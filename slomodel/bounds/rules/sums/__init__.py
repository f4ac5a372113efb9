"""Sums over elements: enclosures from dense rows and from sparse rows."""
