"""Submission of jobs to the sites of a broker, under thresholds of those that wait and run (row W4). Not here: their cache."""
