"""Slopes and curvatures of nodes over a region, and the sums of terms that they give."""
