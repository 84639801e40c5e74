"""A task's own course: waiting, attempts, its end, and its state in words."""
