"""Intervals with outward rounding, and what they tell of graphs: values and derivatives."""
