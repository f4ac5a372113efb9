"""Objectives that are sums over elements: scalar functions of a few affine numbers, log Σ exp."""
