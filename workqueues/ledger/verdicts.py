"""Stored verdicts of the throttler: equal ones in a row are one row with the last numbers, old ones go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields

from django.db import connection, transaction

from workqueues.models import ThrottleVerdict
from workqueues.rules.throttle.throttler import Counts
from workqueues.rules.throttle.unit_verdict import UnitVerdict
from workqueues.rules.throttle.units import Unit

KEPT = 1000
"""Verdicts of a unit that are kept, and how long: both bound the history."""
KEPT_DAYS = 7

COUNTED = tuple(field.name for field in fields(Counts) if field.default == 0)
"""Numbers of jobs, each with a column of its name."""
RENEWED = ("reason", "max_jobs", "lock", "least_priority", *COUNTED, "ratio", "limits", "practice", "config_revision")


def record_verdicts(verdicts: Sequence[UnitVerdict], config_revision: int) -> None:
    """Store the verdicts of one run; a few statements for any number.

    One that decides the same by the same rule as the last of its unit renews that one's numbers, time and count.
    """
    if not verdicts:
        return
    with transaction.atomic():
        known = _last_of([verdict.unit for verdict in verdicts])
        fresh, same = [], []
        for verdict in verdicts:
            row = _row(verdict, config_revision)
            last = known.get(verdict.unit)
            if last is not None and last[1:] == (row.decision, row.rule):
                row.id = last[0]
                same.append(row)
            else:
                fresh.append(row)
        ThrottleVerdict.objects.bulk_update(same, RENEWED)
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE workqueues_throttleverdict SET n_times = n_times + 1, last_at = clock_timestamp() WHERE id = ANY(%s)",
                [[row.id for row in same]],
            )
        ThrottleVerdict.objects.bulk_create(fresh)
        if fresh:
            _drop_old(fresh)


_OF_UNIT = """v.vo = u.vo AND v.prod_source_label = u.label AND v.unit = u.name AND v.work_queue_id = u.queue
    AND v.resource_type = u.rtype"""
_UNITS = "unnest(%(vo)s::text[], %(label)s::text[], %(name)s::text[], %(queue)s::int[], %(rtype)s::text[])"


def _arrays(units: Iterable[Unit]) -> dict[str, list[str] | list[int]]:
    listed = list(units)
    return {
        "vo": [unit.vo for unit in listed],
        "label": [unit.label for unit in listed],
        "name": [unit.name for unit in listed],
        "queue": [unit.work_queue_id for unit in listed],
        "rtype": [unit.resource_type for unit in listed],
    }


def _last_of(units: Sequence[Unit]) -> dict[Unit, tuple[int, str, str]]:
    """Unit -> id, decision and rule of its last verdict."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT u.n, last.id, last.decision, last.rule FROM {_UNITS} WITH ORDINALITY AS u(vo, label, name, queue, rtype, n)
            CROSS JOIN LATERAL (
                SELECT v.id, v.decision, v.rule FROM workqueues_throttleverdict v WHERE {_OF_UNIT} ORDER BY v.id DESC LIMIT 1
            ) last
            """,
            _arrays(units),
        )
        return {units[n - 1]: (id_, decision, rule) for n, id_, decision, rule in cursor}


def _drop_old(fresh: Sequence[ThrottleVerdict]) -> None:
    """Delete what is beyond the bounds of the units that got a new verdict."""
    units = [Unit(row.vo, row.prod_source_label, row.unit, row.work_queue_id, row.resource_type) for row in fresh]
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            DELETE FROM workqueues_throttleverdict WHERE id IN (
                SELECT old.id FROM {_UNITS} AS u(vo, label, name, queue, rtype) CROSS JOIN LATERAL (
                    SELECT v.id FROM workqueues_throttleverdict v WHERE {_OF_UNIT} ORDER BY v.id DESC OFFSET %(kept)s) old)
            OR last_at < now() - make_interval(days => %(days)s)
            """,
            {**_arrays(units), "kept": KEPT, "days": KEPT_DAYS},
        )


def _row(unit_verdict: UnitVerdict, config_revision: int) -> ThrottleVerdict:
    unit, verdict = unit_verdict.unit, unit_verdict.verdict
    return ThrottleVerdict(
        vo=unit.vo,
        prod_source_label=unit.label,
        unit=unit.name,
        work_queue_id=unit.work_queue_id,
        resource_type=unit.resource_type,
        decision=verdict.decision,
        rule=verdict.rule,
        reason=verdict.reason[:255],
        max_jobs=verdict.max_jobs,
        lock=verdict.lock,
        least_priority=verdict.least_priority,
        **{name: getattr(unit_verdict.counts, name) for name in COUNTED},
        ratio=unit_verdict.limits.ratio,
        limits={
            name: {
                "value": limit.value,
                "key": limit.key,
                "level": limit.level,
                "running": unit_verdict.at_levels[limit.level].running,
                "queued": unit_verdict.at_levels[limit.level].queued,
            }
            for name, limit in unit_verdict.unit_limits._asdict().items()
            if limit.value is not None
        },
        practice=sorted(unit_verdict.limits.practice),
        config_revision=config_revision,
    )
