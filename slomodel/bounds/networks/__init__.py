"""Networks of layers: derivatives along one direction by sample, summed over samples by norms."""
