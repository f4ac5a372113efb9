"""A syntax tree to a Problem: names, shapes, index notation, the rules of the language."""
