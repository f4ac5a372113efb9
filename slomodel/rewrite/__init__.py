"""Passes from graph to graph: the same function with better values, or with less work."""

from slomodel.rewrite.stable import carried, rewritten, stable

__all__ = ["carried", "rewritten", "stable"]
