"""Closed convex sets: what an iteration is confined to."""
