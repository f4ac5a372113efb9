"""From text and files to a problem: grammar, syntax tree, elaboration, data loaders."""
