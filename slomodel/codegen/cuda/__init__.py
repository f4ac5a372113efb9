"""Targets `cupy` and `cuda`: generated CUDA C kernels, run by CuPy."""
