"""Open sets as images of whole spaces: one smooth change of variables x = x(u) for each kind."""
