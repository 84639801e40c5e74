"""Agents of supply and match, also those that work on tasks but need the grid or touch jobs (decision G5)."""
