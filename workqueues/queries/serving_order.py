"""When work is served, as SQL: by where its unit stands. `t` is a table with vo, gshare and work_queue_id (tasks, task queues).

A VO that its work queues drive has standings of them with a place; others have those of their shares (the agent share).
"""

from __future__ import annotations

from workqueues.rules.shares.usage import NO_LEAF, NO_TREE

STANDINGS = """LEFT JOIN workqueues_sharestanding s ON s.share_id = t.gshare
    LEFT JOIN workqueues_workqueuestanding w ON w.work_queue_id = t.work_queue_id AND w.vo = t.vo"""

PLACE = f"coalesce(w.place, s.place, CASE WHEN t.gshare = '' THEN {NO_TREE} ELSE {NO_LEAF} END)"
"""0 is served first, below 1; for dispatch."""

TURN = f"CASE WHEN w.place IS NULL THEN coalesce(s.above, FALSE) ELSE w.above END, {PLACE}"
"""For generation: units above what they are entitled to come after all others, then by place."""
