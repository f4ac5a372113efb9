"""Functions of arrays and matrices, of the library and of the model, and their arguments."""
