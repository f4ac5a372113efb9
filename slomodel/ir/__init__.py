"""The expression graph: interned typed nodes, checked constructors, iterative walks."""
