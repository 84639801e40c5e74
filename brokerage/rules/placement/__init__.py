"""How many jobs go to which of the chosen queues."""
