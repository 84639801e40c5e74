"""Work queues: the criteria language, mapping, shares, lint."""
