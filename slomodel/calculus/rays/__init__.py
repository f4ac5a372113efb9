"""Proved bounds on the derivatives of the objective along a ray, as a graph of ordinary nodes."""
