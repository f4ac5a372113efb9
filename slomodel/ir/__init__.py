"""The expression graph: interned typed nodes, checked constructors, iterative walks.

Importing any part of it registers how nodes are pickled and how a call of a function is built.
"""

from slomodel.ir import elementwise as elementwise
from slomodel.ir import records as records
