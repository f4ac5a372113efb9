"""Layered networks: derivatives along one direction per sample, summed over samples by norms."""
