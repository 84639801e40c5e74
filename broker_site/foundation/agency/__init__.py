"""What every agent stands on: its gate and record, the loop that survives its errors, and the "look" messages that wake it.

Not here: what the agents do (`agents` of each app) and their table (`broker_site.roof.beat`).
"""
