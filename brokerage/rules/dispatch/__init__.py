"""Jobs and pilots: matching, messages, settlement, time limits."""
