"""Lipschitz constants of a region: given, sampled or proved."""
