"""Refinements: tighter bounds where the enclosure of a rule may be loose."""
