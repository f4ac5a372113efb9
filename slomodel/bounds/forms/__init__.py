"""Upper bounds of norms of matrices, of forms of higher degree and of polynomials on the sphere."""
