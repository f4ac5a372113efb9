"""Stable forms in place of unstable ones: the table of forms, and rules for whole sums."""
