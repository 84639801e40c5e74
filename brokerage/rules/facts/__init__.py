"""What is known of a task and of the queues, and the formulas over it."""
