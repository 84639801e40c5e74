"""Demand: what has to be done. Tasks, datasets, files, events, work queues, splitting, closing."""
