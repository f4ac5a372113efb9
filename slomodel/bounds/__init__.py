"""Proved bounds on the Lipschitz constants of the gradient and the Hessian over balls."""
