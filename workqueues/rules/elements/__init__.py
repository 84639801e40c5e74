"""Elements: the parts of a task that a child broker pulls (rows W1 to W3). Not here: tables, and the protocol that moves them."""
