"""What the bounds prove about a point: critical points near it, their kind, convexity round it."""
