"""The grid as outside documents say it, and the columns that are made of it."""
