"""Answers that come from the roll-ups of jobs alone: each process keeps them until the agent tally counts again.

A statement goes out with the mark at which the kept answer was read. Where the mark is still the same, the database looks at
nothing else and says so; so an answer is never older than the counts, and keeping it takes no statement of its own. What is asked
is all of the key, the VOs that a visitor may look into among it: nobody gets what another may see.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, TypeVar

from django.db import connections

Answer = TypeVar("Answer")
Rows = Sequence[tuple[Any, ...]]

MOST_ANSWERS = 64
"""Answers that are kept of each statement, those that were last asked for."""
MOST_ROWS = 20_000
"""Rows of an answer that is kept: what a page can show is far less."""

# The mark's row is written in each transaction that writes counts; its place and its writer say which one it is. OFFSET 0: the
# question whether to run the statement stays outside of it. It is joined to one row by no column: its rows keep their order.
_UNLESS_KEPT = """
WITH mark AS MATERIALIZED (SELECT coalesce((SELECT xmin::text || ctid::text FROM brokerage_tallymark), '') AS version)
SELECT mark.version, counts.* FROM mark LEFT JOIN (
    SELECT true AS found, asked.* FROM ({asked}) AS asked WHERE (SELECT version FROM mark) <> %(kept_version)s OFFSET 0
) AS counts ON true
"""


class KeptCounts:
    """A statement over the roll-ups and its answers. `sql` has named parameters and looks at no clock."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self._answers: OrderedDict[object, tuple[str, Any]] = OrderedDict()
        self._lock = Lock()

    def answer(
        self, values: Mapping[str, Any], build: Callable[[Rows], Answer], *, using: str = "default", beside: object = None
    ) -> Answer:
        """What `build` makes of the rows, or made of the same rows before; nobody may change it. One statement.

        `beside`: what else `build` goes by.
        """
        database = connections[using].settings_dict
        of = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
        key = (database["NAME"], database["HOST"], beside, tuple(sorted(of.items())))
        with self._lock:
            version, answer = self._answers.get(key, ("", None))
        with connections[using].cursor() as cursor:
            cursor.execute(_UNLESS_KEPT.format(asked=self.sql), {**values, "kept_version": version or "none"})
            found = cursor.fetchall()
        now = str(found[0][0])
        if now and now == version:
            self._keep(key, version, answer)
            return answer
        rows = [row[2:] for row in found if row[1]]
        made = build(rows)
        if now and len(rows) <= MOST_ROWS:
            self._keep(key, now, made)
        return made

    def _keep(self, key: object, version: str, answer: object) -> None:
        with self._lock:
            self._answers[key] = version, answer
            self._answers.move_to_end(key)
            while len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)
