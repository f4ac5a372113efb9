"""Bounds that look a second time at what a rule found, where that may be loose."""
