"""Orthogonal compression: sums of squares over wide data, by the QR factor of the data."""
