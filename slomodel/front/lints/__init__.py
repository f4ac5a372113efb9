"""Lints: checks that warn of probable mistakes in a model."""
