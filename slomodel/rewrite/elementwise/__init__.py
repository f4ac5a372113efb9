"""Elementwise graphs: parts along common axes, patterns, and polynomials in the parts."""
