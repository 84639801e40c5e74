"""Changes of tasks as actions of the list of tasks: the value stands in the field behind the choice of actions."""

from __future__ import annotations

from collections.abc import Callable

from broker_site.foundation.access.principal import Principal
from brokerage.ledger.job_commands import KILL, kill_all_of
from brokerage.ledger.task_changes import change_task
from workqueues.admin.tasks import ACTIONS, TaskAction
from workqueues.ledger.commands import check_right
from workqueues.ledger.task_changes import unusable
from workqueues.models import Task
from workqueues.rules.task.change_forms import values_of_text
from workqueues.rules.task.changes import CHANGES, Change


def _change(change: Change) -> Callable[[Principal, Task, str, str], None]:
    def act(caller: Principal, task: Task, value: str, comment: str) -> None:
        check_right(caller, task, change.right)
        asked, problems = change.read({**values_of_text(change, value), "comment": comment or "from the admin"})
        if problems:
            raise unusable(problems)
        change_task(caller, task, change, asked)

    return act


def _label(change: Change) -> str:
    names = [name for name in change.asked.model_fields if name != "comment"]
    wanted = f" ({'value' if len(names) == 1 else ' '.join(f'{name}=...' for name in names)})" if names else ""
    return f"{change.title.replace(' a task', ' selected tasks')}{wanted}"


def _kill_jobs(caller: Principal, task: Task, _value: str, comment: str) -> None:
    kill_all_of(caller, task, comment or "from the admin")


for _row in CHANGES.values():
    _name = f"change_{_row.name.replace('-', '_')}"
    ACTIONS.add(_name, TaskAction(_name, _label(_row), _row.right.permission, _change(_row), "changed"))
ACTIONS.add(
    "kill_jobs", TaskAction("kill_jobs", "Kill the jobs of selected tasks, which go on", KILL, _kill_jobs, "rid of their jobs")
)
