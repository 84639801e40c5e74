"""Django's PostgreSQL with one difference: whether a connection still works is seen at its socket."""
