"""Reading: pages and the read side of the API, on a read-only database connection."""
