"""Between granian and Django's handler: what keeps a slow or greedy client from the threads that others need."""
