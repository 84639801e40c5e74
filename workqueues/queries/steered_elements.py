"""Elements of a child broker of which something else is wished now than it was told: paused, resumed, cancelled, more urgent."""

from __future__ import annotations

from workqueues.rules.elements.messages import MOST_ELEMENTS
from workqueues.states.elements import ELEMENT

STEERED = f"""
SELECT e.id, e.try_nr FROM workqueues_element e JOIN workqueues_task t ON t.id = e.task_id
WHERE e.child_id = c.id AND e.status IN ({ELEMENT.at_work.sql}) AND (e.priority <> t.current_priority
    OR t.status_since > e.told_at OR e.status = 'CancelRequested' AND e.status_since > e.told_at)
ORDER BY e.id LIMIT {MOST_ELEMENTS}"""
"""Elements, and their tries, of the child `c` that it should report now, to be told what is wished of them; else it reports a
quiet one after half of its lease. The priority of one at work is that which its child was told last.
"""
