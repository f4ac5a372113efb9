"""Syntax errors: where a parse stopped, which message that deserves, and what to do."""
