"""Power series near the points at which formulas cancel."""
