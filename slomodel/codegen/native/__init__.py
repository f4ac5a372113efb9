"""Target `c`: one C function per entry, compiled by the system's compiler."""
