"""Recognition of structure in objectives, and rewriting into forms that rules recognise."""
