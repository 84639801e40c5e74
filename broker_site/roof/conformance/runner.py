"""Runs files of conformance cases: one line per failing case, last line `N passed, M failed`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from broker_site.roof.conformance import families  # noqa: F401 - maps them
from broker_site.roof.conformance.cases import BadCases, Case, differences, read_cases
from broker_site.roof.conformance.registry import NoFunction, answer

NOT_YET = Path(__file__).resolve().parents[3] / "tests" / "conformance" / "not_yet.txt"
"""The families whose issue is not due yet, one a line with their row ids."""


@dataclass(frozen=True, slots=True)
class Report:
    """How many cases passed, why others failed (case id, sentence), and how many were left out per family that is not due yet."""

    passed: int
    failures: tuple[tuple[str, str], ...]
    left_out: dict[str, int]

    def lines(self) -> list[str]:
        """The report for people, the counts last."""
        lines = [f"{case} FAILED {why}" for case, why in self.failures]
        if self.left_out:
            counts = ", ".join(f"{family} {count}" for family, count in sorted(self.left_out.items()))
            lines.append(f"{sum(self.left_out.values())} not yet: {counts}")
        return [*lines, f"{self.passed} passed, {len(self.failures)} failed"]


def not_yet(path: Path = NOT_YET) -> dict[str, str]:
    """Family to row ids of the list of what is not due yet; empty where there is no such file."""
    if not path.exists():
        return {}
    lines = (line.split("#", 1)[0].split() for line in path.read_text(encoding="utf-8").splitlines())
    return {words[0]: " ".join(words[1:]) for words in lines if words}


def failure(case: Case) -> str:
    """Why a case fails; empty where it passes."""
    try:
        return "; ".join(differences(case, answer(case)))
    except NoFunction as missing:
        return str(missing)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return f"raised {type(error).__name__}: {error}"


def run_cases(cases: Iterable[Case], left_out: Iterable[str] = ()) -> Report:
    passed, failures, skipped = 0, [], dict[str, int]()
    absent = frozenset(left_out)
    for case in cases:
        if case.family in absent:
            skipped[case.family] = skipped.get(case.family, 0) + 1
        elif why := failure(case):
            failures.append((f"{case.id} ({case.family})", why))
        else:
            passed += 1
    return Report(passed, tuple(failures), skipped)


def main(paths: Iterable[str], say: Callable[[str], object] = print) -> int:
    """Run files of cases and say the report; 1 if a case failed, 2 if a file holds no cases, else 0."""
    try:
        cases = [case for path in paths for case in read_cases(Path(path))]
    except BadCases as bad:
        say(str(bad))
        return 2
    report = run_cases(cases, not_yet())
    for line in report.lines():
        say(line)
    return 1 if report.failures else 0
