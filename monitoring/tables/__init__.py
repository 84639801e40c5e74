"""Lists of rows: keyset pages, filters from the address, and the same rows as JSON and CSV."""
