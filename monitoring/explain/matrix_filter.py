"""Which candidates of a decision a page shows: by name, by criterion, chosen or not, page by page. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlencode

SIZE = 40
"""Candidates on a page: the matrix has a cell for each criterion of each."""
HOW = {"first": "skipped first by", "any": "failing", "alone": "failing only"}
SHOWN = {"": "all", "chosen": "chosen", "skipped": "not chosen"}
PARAMETERS = ("name", "criterion", "how", "show", "page")


@dataclass(frozen=True, slots=True)
class MatrixFilter:
    """What the address asks for. `how`: one of HOW; `show`: one of SHOWN; `page` from 1. `decision` stays in every link."""

    decision: str = ""
    name: str = ""
    criterion: str = ""
    how: str = "first"
    show: str = ""
    page: int = 1

    @property
    def active(self) -> bool:
        return bool(self.name or self.criterion or self.show)

    def takes(self, name: str, marks: str, criteria: tuple[str, ...]) -> bool:
        """Whether a candidate with these symbols (see `brokerage.rules.explain.explanation`) is shown."""
        if self.name and not self._names(name.lower()):
            return False
        if self.show and (self.show == "chosen") != (marks.count(".") == len(marks)):
            return False
        return not self.criterion or self._fails(marks, criteria)

    def _names(self, name: str) -> bool:
        pattern = self.name.lower()
        return fnmatchcase(name, pattern.replace("[", "[[]")) if "*" in pattern or "?" in pattern else pattern in name

    def _fails(self, marks: str, criteria: tuple[str, ...]) -> bool:
        inside = [mark for mark, criterion in zip(marks, criteria, strict=True) if criterion == self.criterion]
        if self.how == "first":
            return any(mark in "PT" for mark in inside)
        failures = sum(mark != "." for mark in inside)
        return failures > 0 and (self.how == "any" or failures == sum(mark != "." for mark in marks))

    def address(self, **changes: Any) -> str:
        """The query string of the page with some parameters changed; a change but of the page begins at its first one."""
        parameters = {name: getattr(self, name) for name in ("decision", *PARAMETERS)}
        if "page" not in changes:
            parameters["page"] = 1
        parameters = {**parameters, **changes}
        if not parameters["criterion"]:
            parameters["how"] = ""
        defaults = {"page": 1, "how": "first"}
        return f"?{urlencode([(k, v) for k, v in parameters.items() if v and v != defaults.get(k)])}"


def read_matrix_filter(sent: Mapping[str, str], decision: int | None) -> MatrixFilter:
    """From the parameters of an address; what makes no sense counts as not given."""
    page = sent.get("page", "")
    return MatrixFilter(
        decision=str(decision or ""),
        name=sent.get("name", "").strip()[:100],
        criterion=sent.get("criterion", "").strip()[:60],
        how=sent.get("how", "") if sent.get("how", "") in HOW else "first",
        show=sent.get("show", "") if sent.get("show", "") in SHOWN else "",
        page=int(page) if page.isascii() and page.isdigit() and 0 < len(page) < 6 and int(page) else 1,
    )
