"""Removable singularities: quotients, products and roots at points where factors vanish."""
