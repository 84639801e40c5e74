"""Decisions in plain text for a terminal: verdict, funnel, weights, the reason of each queue, what-ifs, empty queues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from brokerage.models import Decision
from brokerage.rules.explain.explanation import ChosenCandidate, Explanation, SkippedCandidate, Step
from brokerage.rules.explain.remedies import Remedy
from brokerage.rules.explain.what_if import WhatIf
from brokerage.rules.explain.why_empty import WhyEmpty
from brokerage.rules.explain.why_not import Check, WhyNot

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
        yield from (f"         {' ' * width}  {line}" for line in _depends(check.depends_on))
    factors = " x ".join(f"{name} {_number(value)}" for name, value in told.factors.items())
    would = "" if told.chosen else " (what it would have had)"
    yield f"    weight {_number(told.weight)} = {factors}{would}"


def what_if_report(told: WhatIf) -> Iterator[str]:
    """The lines of a what-if; with edits also what they change."""
    yield "If the brokerage looked now (nothing is written):"
    yield from story(told.before)
    yield from _jobs(told.jobs)
    if told.after is None:
        return
    yield ""
    yield "And with " + ", ".join(f"{e.name} = {_said(e.after)} (is {_said(e.before)})" for e in told.edits) + ":"
    yield f"  {told.after.verdict}"
    yield from _side_by_side(told.before, told.after)
    yield from _jobs(told.jobs_after)
    if not told.changed:
        yield "  no verdict changes"
        return
    yield "  changed"
    width = max(len(c.name) for c in told.changed)
    for change in told.changed[:MOST_SKIPPED]:
        yield f"    {change.name:{width}}  {change.before} -> {change.after}: {change.why_after}".rstrip(": ")
    if len(told.changed) > MOST_SKIPPED:
        yield f"    and {len(told.changed) - MOST_SKIPPED} more; --json has all"


def empty(told: WhyEmpty) -> Iterator[str]:
    """The lines on a queue: how the latest decisions went for it."""
    yield f"Queue {told.name}: {told.verdict}"
    yield f"  latest decisions about tasks that have not ended: {told.decisions}, of which {len(told.chosen)} took it"
    if told.absent:
        yield f"  in {told.absent} it took no part"
    if not told.tallies:
        return
    width = max(len(t.criterion) for t in told.tallies)
    yield f"    {'':{width}}  {'first':>6} {'failed':>6} {'alone':>6}"
    for tally in told.tallies:
        tasks = f"  tasks {', '.join(str(task) for task, _ in tally.examples)}" if tally.examples else ""
        yield f"    {tally.criterion:{width}}  {tally.first:>6} {tally.failed:>6} {tally.alone:>6}  {tally.kind}{tasks}"
    yield "  first: skipped it first; failed: would have skipped it too; alone: nothing else did"


def _jobs(told: Explanation | None) -> Iterator[str]:
    """What the job broker says while the nucleus is not chosen."""
    if told is not None:
        yield f"  its jobs, by the policy {told.policy}, at whatever nucleus: {told.verdict}"
        yield from _funnel(told.funnel)


def _side_by_side(before: Explanation, after: Explanation) -> Iterator[str]:
    """Both funnels: how many are left after each criterion."""
    left = {step.criterion: step.left for step in before.funnel}, {step.criterion: step.left for step in after.funnel}
    labels = [label for label in (before.criteria or after.criteria) if label in left[0] or label in left[1]]
    width = max([len(label) for label in labels] + [len("candidates")])
    yield f"    {'':{width}}  {'now':>6} {'then':>6}"
    yield f"    {'candidates':{width}}  {before.candidates:>6} {after.candidates:>6}"
    last = [before.candidates, after.candidates]
    for label in dict.fromkeys(labels):
        last = [side.get(label, known) for side, known in zip(left, last, strict=True)]
        yield f"    {label:{width}}  {last[0]:>6} {last[1]:>6} left"


def _depends(remedies: Sequence[Remedy]) -> Iterator[str]:
    """What would change a verdict, one line for each kind of thing."""
    for where, words in (
        ("queue", "of the queue"),
        ("task", "of the task"),
        ("configuration", "configuration"),
        ("moment", "now"),
    ):
        own = [r for r in remedies if r.where == where]
        if own:
            yield f"{words}: " + ", ".join(f"{r.name} {_said(r.value)}" + _enough(r) for r in own)


def _enough(remedy: Remedy) -> str:
    return "" if remedy.enough is None else f" (would do: {remedy.enough})"


def _said(value: object) -> str:
    if value is None or value == "" or value == ():
        return "not given"
    return (
        f"{value:g}"
        if isinstance(value, float)
        else ", ".join(map(str, value))
        if isinstance(value, tuple | list)
        else str(value)
    )


def _passed(check: Check) -> str:
    """What a criterion asks that the candidate passed, with what it compared, as far as there was something."""
    known = {name: value for name, value in check.numbers.items() if value not in (None, "", [], ())}
    known.pop("what", None)  # what would be wrong with a weight
    numbers = ", ".join(f"{name} {f'{value:g}' if isinstance(value, float) else value}" for name, value in known.items())
    return f"{check.about} ({numbers})" if check.about and numbers else check.about or numbers


def _first(told: WhyNot) -> str:
    return f"not chosen, {told.first.criterion}: {told.first.reason}" if told.first else "not chosen"


def _funnel(steps: Sequence[Step]) -> Iterator[str]:
    width = max((len(s.criterion) for s in steps), default=0)
    for step in steps:
        yield f"    {step.criterion:{width}}  {step.skipped:>5} skipped, {step.left:>5} left  ({step.kind})"


def _chosen(chosen: Sequence[ChosenCandidate]) -> Iterator[str]:
    width = max(len(c.name) for c in chosen)
    for one in chosen:
        factors = " x ".join(f"{name} {value:.4g}" for name, value in one.factors.items())
        yield f"    {one.name:{width}}  weight {one.weight:.4g} = {factors}"


def _skipped(skipped: Sequence[SkippedCandidate]) -> Iterator[str]:
    shown = skipped[:MOST_SKIPPED]
    width, label = max(len(s.name) for s in shown), max(len(s.criterion) for s in shown)
    for one in shown:
        yield f"    {one.name:{width}}  {one.criterion:{label}}  {one.reason}"
    if len(skipped) > len(shown):
        yield f"    and {len(skipped) - len(shown)} more; --json has all"


def _number(value: float | None) -> str:
    return "not a number" if value is None else f"{value:.4g}"
