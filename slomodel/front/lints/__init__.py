"""Lints: checks of a model that warn of what was probably not meant."""
