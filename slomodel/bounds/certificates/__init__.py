"""Proofs about a point: critical points near it, their kind, convexity in balls around it."""
