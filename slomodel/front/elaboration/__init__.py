"""Elaboration of a syntax tree to a Problem: names, shapes, index notation."""
