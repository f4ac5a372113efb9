"""Compiled loops of plain steps, for runs whose evaluations take less time than Python."""
