"""Django's admin of supply: the grid to edit, each edit audited; jobs, pilots and decisions to read."""

from brokerage.admin import (  # noqa: F401 - registers them
    bulk,
    decisions,
    grid,
    grid_facts,
    grid_feeds,
    grid_overrides,
    jobs,
    queue_asks,
    requirements,
    retry_rules,
    rollups,
    saved_views,
    site_limits,
    submission,
    task_changes,
    transfers,
    waiting,
)
