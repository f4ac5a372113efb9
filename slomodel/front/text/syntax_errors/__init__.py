"""Syntax errors: where parsing failed, the message, and its remedy."""
