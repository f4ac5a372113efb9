"""Taylor forms: each node as its value and gradient at the centre, with a remainder."""
