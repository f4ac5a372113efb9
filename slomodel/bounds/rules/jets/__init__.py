"""Norms of derivatives by blocks of variables, propagated through the gradient's graph."""
