"""The expression graph: interned typed nodes, checked constructors, iterative walks."""

from slomodel.ir import records as records  # pickling is registered on import
