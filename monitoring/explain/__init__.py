"""Why a task is where it is: stored decisions told again, and what else it may wait for. Pure over what the queries read."""
