"""Readers of outside descriptions of the grid: from a file or an address to the plain data that the rules check."""
