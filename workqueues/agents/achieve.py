"""Agent achieve. Takes working tasks with a goal, and exhausted ones. Leaves those that have reached it, and those that nobody
retried for long, finishing. Next: the agent command.

Jobs that run go on to their end; nothing new is made (decision D10).
"""

from __future__ import annotations

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from broker_site.foundation.gdpconfig.texts import duration_text
from broker_site.foundation.kernel.machine import NotAllowed
from workqueues.ledger.commands import command
from workqueues.models import Task
from workqueues.queries.goals import achievements, exhausted_for_long
from workqueues.rules.task.commands import COMMANDS
from workqueues.rules.task.finish import goal_reached


@agent("achieve")
def achieve(run: Run) -> int:
    """Finish what is good enough. Always 0: an agent that handled rows is run again at once, and here nothing is ever left."""
    for task in achievements():
        if goal_reached(task.goal, task.datasets, untried_files=0, output_events=task.output_events):
            _finish(task.task_id, f"its goal of {task.goal / 10:g} % is reached", run.who)
    waits_s = exhausted_wait_s()
    for task_id, vo, reason in exhausted_for_long(waits_s):
        _finish(task_id, f"nobody retried it for {duration_text(waits_s[vo])}: {reason}", run.who)
    return 0


def exhausted_wait_s() -> dict[str, float]:
    """How long exhausted tasks wait for somebody, by the VO that has any, s."""
    vos = Task.objects.filter(status="exhausted").order_by("vo").values_list("vo", flat=True).distinct()
    return {vo: gdpconfig.value("watchdog", "EXHAUSTED_TIMEOUT", vo=vo) for vo in vos}


def _finish(task_id: int, why: str, who: str) -> None:
    try:
        command(task_id, "finish", who, COMMANDS["finish"].kept(why, {"soft": True}))
    except NotAllowed:
        return  # somebody else has given it a command meanwhile, or it has ended
