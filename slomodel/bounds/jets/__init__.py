"""Norms of derivatives by blocks of variables, passed through the gradient's graph."""
