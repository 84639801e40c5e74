"""Django's admin of supply: the grid to edit, each edit audited; jobs, pilots and decisions to read."""

from brokerage.admin import decisions, grid, grid_facts, grid_feeds, grid_overrides, jobs, transfers, waiting  # noqa: F401 - registers them
