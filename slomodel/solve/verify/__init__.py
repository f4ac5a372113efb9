"""The inequalities of the theorems, and the certificate of a run."""
