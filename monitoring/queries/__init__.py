"""Reads for the pages: from the read-only connection to frozen facts. Nothing here writes or formats."""
