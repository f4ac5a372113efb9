"""Graphs computed one segment after another, so that few values are stored at a time."""
