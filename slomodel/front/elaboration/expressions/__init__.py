"""Rules of expressions: operators, literals, calls."""
