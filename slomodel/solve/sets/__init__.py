"""Closed convex sets to which the iterations are confined."""
