"""Target `c`: one C function an entry, compiled by the system's compiler."""
