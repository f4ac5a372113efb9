"""Syntax errors: the position of the failure, the message, and the remedy."""
