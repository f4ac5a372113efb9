"""Targets `cupy` and `cuda`: kernels in CUDA C of our own, run by CuPy."""
