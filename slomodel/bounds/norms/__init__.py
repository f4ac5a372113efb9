"""Upper bounds on norms of matrices and forms: their largest values on the unit sphere.

spectral_norm          matrices; `eigenvalues`: both ends of symmetric ones
cubic_norm             symmetric trilinear forms; `quartic_norm`: forms of degree 4
loewner                sums Σ d a aᵀ and Σ t a⊗a⊗a over rows a, ordered as matrices
power_sums             Σ c |a·v|^q for many weights; `fourth_powers`: one sum, q = 4
polynomial             polynomials with coefficients >= 0 in the lengths of blocks
element_derivatives    sums over elements, from ranges of the derivatives of their functions
curvature_sums         Σ C ∇u ∇uᵀ, where the gradients move over the ball
lanczos                Krylov spaces, for lower estimates
"""
