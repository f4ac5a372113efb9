"""Targets whose source is a Python module: `numpy` and `numexpr`."""
