"""Power series of nodes in few unknowns: coefficients to some degree, and a norm of the others."""
