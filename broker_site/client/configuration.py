"""The configuration: keys with what holds, and change sets, which also steer shares and work queues."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from broker_site.client.connection import Connection
from broker_site.client.drafts import Entry, Line, override_entries, row_entries
from broker_site.client.errors import Refused
from broker_site.client.rows import Row, listed, rows

CHANGES, PROPOSALS, DRAFT = "config/changes/", "config/proposals/", "config/draft/"
_PART = re.compile(r"<[A-Za-z][A-Za-z0-9_]*>")


@dataclass(frozen=True)
class Held:
    """What holds for a key: `value`, and `source`, where it comes from; `row`: the key with all overrides."""

    key: str
    value: str
    source: str
    row: Row
    override: Row | None = None


class Configuration:
    """`client.config`.

    A line of a change has `kind` (config, share, work_queue), `key`, `vo`, `value` (None removes) and perhaps `until`.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self, **filters: Any) -> Sequence[Row]:
        """Every key with type, default, value that holds and overrides; filters: `component`, `q`, `overridden="true"`."""
        return listed(self._connection.get("config/", filters), "results")

    def get(self, key: str, vo: str = "") -> Held:
        """What holds for a key (`jobbroker.NQUEUELIMITSITE`, or its name alone where one has it), in a VO. Refused with 404."""
        keys = self.list()
        found = _named(keys, key)
        if len(found) != 1:
            several = f"several have that name: {', '.join(map(_key, found))}" if found else _nearest(key, keys)
            raise Refused(404, {"title": f"Not found: {key}", "detail": several}, "broker cfg ls q=WORD finds keys by words")
        (row,) = found
        front = _front(row)
        name = key.removeprefix(front)
        of_key = {each["vo"]: each for each in row["overrides"] if each["name"] == name and not each["fault"]}
        held = of_key.get(vo) or of_key.get("")
        if held is not None:
            return Held(front + name, held["value"], f"override for {held['vo'] or 'all VOs'}", row, held)
        return Held(front + name, row["default_value"], "default", row)

    def changes(self, limit: int | None = 100, **filters: Any) -> Iterator[Row]:
        """Change sets, newest first, each with its first lines; filters are those of `/api/v1/config/changes/`."""
        return rows(self._connection, CHANGES, filters, limit)

    def change(self, revision: int) -> Row:
        """One change set with all lines."""
        document: Row = self._connection.get(f"{CHANGES}{int(revision)}/")
        return document

    def export(self, vo: str = "", lists: Sequence[str] = ("overrides", "shares", "work_queues")) -> tuple[int, dict[str, Any]]:
        """The revision, and what stands at it: overrides, shares and work queues, of one VO where it is named."""
        sources: Mapping[str, tuple[str, Any]] = {
            "overrides": ("config/?overridden=true", override_entries),
            "shares": ("shares/", row_entries),
            "work_queues": ("work-queues/", row_entries),
        }
        revisions, document = [], {}
        for name in lists:
            path, entries = sources[name]
            page = self._connection.get(path)
            found: Sequence[Entry] = entries(listed(page, "results"))
            document[name] = [entry for entry in found if not vo or entry.get("vo", "") == vo]
            revisions.append(int(page["revision"]))
        return min(revisions), document  # what was changed while it was read is refused, not written over

    def read_draft(self, text: str) -> dict[str, Any]:
        """The document that a draft is, YAML or JSON, as the server reads it. Refused with the line of each fault."""
        answer = self._connection.ask("POST", DRAFT, body=text.encode(), headers={"Content-Type": "application/yaml"})
        document: dict[str, Any] = answer.json()["document"]
        return document

    def export_yaml(self, vo: str = "") -> str:
        """What stands as YAML that people read: overrides, shares and work queues, of one VO where it is named."""
        asked = {"format": "yaml", **({"vo": vo} if vo else {})}
        return self._connection.ask("GET", DRAFT, query=asked, headers={"Accept": "application/yaml"}).body.decode()

    def dry_run(self, lines: Sequence[Line], base: int | None = None) -> Row:
        """What these lines would lead to: `lines` with before and after, `decisions` and `steering` in words. Writes nothing."""
        return self._post(CHANGES, lines, "dry run", base, dry_run=True)

    def apply(self, lines: Sequence[Line], reason: str, ticket: str = "", base: int | None = None) -> Row:
        """Apply all lines or none: the change set; `revision` None where nothing differs.

        `base`: the revision that they rest on; what was changed since is Refused (409).
        """
        return self._post(CHANGES, lines, reason, base, ticket=ticket)

    def propose(self, lines: Sequence[Line], reason: str, ticket: str = "", base: int | None = None) -> Row:
        """Keep them for somebody else to approve, as keys that take two people want it: the proposal."""
        return self._post(PROPOSALS, lines, reason, base, ticket=ticket)

    def proposals(self, limit: int | None = 100, **filters: Any) -> Iterator[Row]:
        """What was proposed, newest first; filters: `open="true"`, `outcome`, `who`."""
        return rows(self._connection, PROPOSALS, filters, limit)

    def proposal(self, number: int) -> Row:
        """One proposal, with all lines."""
        document: Row = self._connection.get(f"{PROPOSALS}{int(number)}/")
        return document

    def approve(self, number: int) -> Row:
        """Apply what somebody else proposed; `revision` None where all of it held already."""
        document: Row = self._connection.post(f"{PROPOSALS}{int(number)}/approve/", None)
        return document

    def decline(self, number: int, reason: str) -> Row:
        """Refuse a proposal, or withdraw one's own."""
        document: Row = self._connection.post(f"{PROPOSALS}{int(number)}/decline/", {"reason": reason})
        return document

    def revert(self, revision: int, reason: str, dry_run: bool = False) -> Row:
        """Bring back what a change set found; the new change set, or what it would lead to."""
        body = {"reason": reason, "dry_run": dry_run}
        document: Row = self._connection.post(f"{CHANGES}{int(revision)}/revert/", body)
        return document

    def _post(self, path: str, lines: Sequence[Line], reason: str, base: int | None, **more: Any) -> Row:
        body = {"lines": list(lines), "reason": reason, "base": base, **more}
        document: Row = self._connection.post(path, body)
        return document


def _named(keys: Sequence[Row], key: str) -> list[Row]:
    """The keys that are meant: of those whose parts it fills in, the one that says most."""
    whole = [row for row in keys if key.startswith(_front(row))]
    fitting = [row for row in whole or keys if re.fullmatch(_shape(row), key[len(_front(row)) :] if whole else key)]
    most = max((len(_PART.sub("", row["name"])) for row in fitting), default=0)
    exact = [row for row in fitting if not _PART.search(row["name"])]
    return exact or [row for row in fitting if len(_PART.sub("", row["name"])) == most]


def _nearest(key: str, keys: Sequence[Row]) -> str:
    """That there is no such key, and the one that is most like it, with its component or without."""
    known = {name: _key(row) for row in keys for name in (str(row["name"]), _key(row))}
    near = get_close_matches(key[:100], known, 1)
    return f"there is no such key{f'; the nearest one is {known[near[0]]}' if near else ''}"


def _shape(row: Row) -> str:
    name = str(row["name"])
    return ".+".join(re.escape(part) for part in _PART.split(name)) + "|" + re.escape(name)


def _front(row: Row) -> str:
    return _key(row).removesuffix(str(row["name"]))


def _key(row: Row) -> str:
    return str(row["key"])
