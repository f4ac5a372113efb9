"""Statements: declarations, sets of variables, definitions, constraints and the objective."""
