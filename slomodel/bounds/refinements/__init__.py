"""Refinements: tighter bounds for the enclosures of a rule that may be loose."""
