"""Agents of demand: claim, load, decide, apply. Those that need the grid or touch jobs are in `brokerage.agents`."""
