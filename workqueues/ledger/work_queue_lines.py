"""Lines of change sets that steer the work queues: the only writer of work queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.gdpconfig.changesets import Place, Step, columns_of
from broker_site.foundation.gdpconfig.models import Change
from broker_site.foundation.gdpconfig.row_lines import RowLines
from broker_site.foundation.kernel.verdict import Problem
from workqueues.models import Task, WorkQueue
from workqueues.queries.steered_rows import (
    BETWEEN,
    WORK_QUEUE,
    WORK_QUEUE_COLUMNS,
    bare_queue,
    queue_place,
    queue_rows,
    queues_as_texts,
    split_name,
)
from workqueues.queries.work_queues import definition, unique_name
from workqueues.rules.work_queues.lint import faults

STATUSES = ("active", "inactive")
LONGEST = 32


class WorkQueueLines(RowLines):
    """The name of a line is that of a work queue, with its label after a slash where it is for one: `evgen/managed`.

    Name, label and VO of a queue stay: tasks and keys of the configuration know it by them.
    """

    kind, member = WORK_QUEUE, "work_queues"
    columns = WORK_QUEUE_COLUMNS
    for_all = ("", "*")

    def rows(self) -> dict[Place, str]:
        """All work queues in their order."""
        return queues_as_texts()

    def name_problems(self, place: Place) -> Iterator[Problem]:
        """Names and labels have no slash themselves."""
        name, label = split_name(place.name)
        if not 0 < len(name) <= LONGEST or not name.isprintable() or name != name.strip():
            yield Problem("key", "name", f"a work queue has a name of 1 to {LONGEST} printable characters")
        if len(label) > LONGEST or not label.isprintable() or BETWEEN in label:
            yield Problem("key", "name", f"the label after the slash has at most {LONGEST} printable characters")
        if len(place.vo) > LONGEST or not place.vo.isprintable():
            yield Problem("vo", "vo", f"a VO has at most {LONGEST} printable characters; * stands for all")

    def faults(self, steps: Sequence[Step], after: Mapping[Place, str]) -> Iterator[Problem]:
        """Of each queue of the set beside all others; a queue with tasks or sub queues stays."""
        rows = queue_rows(after)
        known = [definition(row) for row in rows.values()]
        for step in steps:
            at = f"lines[{step.number}]"
            if step.after is None:
                if step.before is not None and (why := _kept(step.place, rows)):
                    yield Problem(at, "used", why)
                continue
            row = rows[step.place]
            if row.status not in STATUSES:
                yield Problem(f"{at}.status", "choice", f"{' or '.join(STATUSES)}, not {row.status[:20]!r}")
            mine = definition(row)
            into = columns_of(step.after)["partition"]
            if into and mine.partition != into:
                yield Problem(f"{at}.partition", "partition", f"{into[:60]} is no partition")
            for fault in faults(mine, [other for other in known if other is not mine and other.name != mine.name]):
                yield Problem(f"{at}.{fault.field}", fault.rule, fault.message)

    def put(self, changes: Sequence[Change]) -> None:
        """Write the rows, partitions before what is in them."""
        rows = {queue_place(row): row for row in WorkQueue.objects.all()}
        texts = {change.place: change.after for change in changes if change.after is not None}
        made = [bare_queue(place, text) for place, text in texts.items() if place not in rows]
        WorkQueue.objects.bulk_create(made)
        rows |= {queue_place(row): row for row in made}
        by_name = {unique_name(row): row for row in rows.values()}
        for place, text in texts.items():
            columns = columns_of(text)
            rows[place].partition = by_name.get(columns.pop("partition"))
            for name, value in columns.items():
                setattr(rows[place], name, value)
        WorkQueue.objects.bulk_update([rows[place] for place in texts], [column.name for column in self.columns])
        gone = [rows[change.place].pk for change in changes if change.after is None and change.place in rows]
        if gone:
            WorkQueue.objects.filter(pk__in=gone).update(partition=None)  # one that goes too does not hold its partition
            WorkQueue.objects.filter(pk__in=gone).delete()
        look_after_commit("share")


def _kept(place: Place, rows: Mapping[Place, WorkQueue]) -> str:
    """Why a work queue cannot be removed; empty if it can."""
    name, label = split_name(place.name)
    there = WorkQueue.objects.filter(queue_name=name, queue_type=label, vo=place.vo).first()
    if there is None:
        return ""
    if Task.objects.filter(work_queue=there).exists():
        return f"{place} has tasks, so it stays: set its status to inactive"
    inside = [row.queue_name for row in rows.values() if row.partition and unique_name(row.partition) == unique_name(there)]
    return f"{place} has sub queues: {', '.join(inside[:5])}" if inside else ""
