"""Decisions in plain text for a terminal: verdict, funnel, weights, the reason of each queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from brokerage.models import Decision
from brokerage.rules.explain import Chosen, Explanation, Skipped, Step
from brokerage.rules.why_not import Check, WhyNot

MOST_SKIPPED = 50
"""Skipped candidates that the text lists; `--json` and `--queue` have all."""


def head(decision: Decision) -> str:
    """Which decision it is."""
    times = f"{decision.n_times} times alike, last" if decision.n_times > 1 else "taken"
    return f"Decision {decision.id} of the policy {decision.policy}, {times} at {decision.last_at:%Y-%m-%d %H:%M:%S} UTC"


def story(told: Explanation | None) -> Iterator[str]:
    """The lines of a decision."""
    if told is None:
        yield "  its record is of a format that is no longer read"
        return
    yield f"  {told.verdict}"
    if told.funnel:
        yield f"  {told.candidates} candidates"
        yield from _funnel(told.funnel)
    if told.chosen:
        yield "  chosen, best first"
        yield from _chosen(told.chosen)
    if told.skipped:
        yield "  not chosen"
        yield from _skipped(told.skipped)
    if not told.detailed:
        yield "  reasons with numbers are gone: the snapshot is no longer kept, or the policy has changed since"


def against(told: WhyNot) -> Iterator[str]:
    """The lines on one candidate: every criterion, then its weight."""
    yield f"  {told.name}: {'chosen' if told.chosen else _first(told)}"
    width = max((len(c.criterion) for c in told.checks), default=0)
    for check in told.checks:
        sign = "ok  " if check.passed else "skip"
        yield f"    {sign} {check.criterion:{width}}  {check.reason or _passed(check)}".rstrip()
    factors = " x ".join(f"{name} {_number(value)}" for name, value in told.factors.items())
    yield f"    weight {_number(told.weight)} = {factors}"


def _passed(check: Check) -> str:
    """What a criterion asks that the candidate passed, with what it compared, as far as there was something."""
    known = {name: value for name, value in check.numbers.items() if value not in (None, "", [], ())}
    known.pop("what", None)  # what would be wrong with a weight
    numbers = ", ".join(f"{name} {f'{value:g}' if isinstance(value, float) else value}" for name, value in known.items())
    return f"{check.about} ({numbers})" if check.about and numbers else check.about or numbers


def _first(told: WhyNot) -> str:
    return f"not chosen, {told.first.criterion}: {told.first.reason}" if told.first else "not chosen"


def _funnel(steps: Sequence[Step]) -> Iterator[str]:
    width = max(len(s.criterion) for s in steps)
    for step in steps:
        yield f"    {step.criterion:{width}}  {step.skipped:>5} skipped, {step.left:>5} left  ({step.kind})"


def _chosen(chosen: Sequence[Chosen]) -> Iterator[str]:
    width = max(len(c.name) for c in chosen)
    for one in chosen:
        factors = " x ".join(f"{name} {value:.4g}" for name, value in one.factors.items())
        yield f"    {one.name:{width}}  weight {one.weight:.4g} = {factors}"


def _skipped(skipped: Sequence[Skipped]) -> Iterator[str]:
    shown = skipped[:MOST_SKIPPED]
    width, label = max(len(s.name) for s in shown), max(len(s.criterion) for s in shown)
    for one in shown:
        yield f"    {one.name:{width}}  {one.criterion:{label}}  {one.reason}"
    if len(skipped) > len(shown):
        yield f"    and {len(skipped) - len(shown)} more; --json has all"


def _number(value: float | None) -> str:
    return "not a number" if value is None else f"{value:.4g}"
