"""Recognition of structure in objectives, and rewriting into forms in which rules see it."""
