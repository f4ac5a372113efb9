"""Recurrences: definitions by index whose elements depend on earlier ones."""
