"""Write the objective; get fast kernels and a solver that needs no global Lipschitz constant."""

__version__ = "0.1.0"

__all__ = ["__version__"]
