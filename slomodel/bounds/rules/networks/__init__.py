"""Layered networks: derivatives along one direction by sample, summed over samples by norms."""
