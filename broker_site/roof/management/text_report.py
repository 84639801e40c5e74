"""Decisions in plain text for a terminal: verdict, funnel, weights, the reason of each queue, what-ifs, empty queues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from brokerage.models import Decision
from brokerage.queries.last_asks import AsksAtQueue
from brokerage.rules.explain.explanation import ChosenCandidate, Explanation, SkippedCandidate, Step
from brokerage.rules.explain.remedies import Remedy
from brokerage.rules.explain.what_if import WhatIf
from brokerage.rules.explain.why_empty import WhyEmpty
from brokerage.rules.explain.why_not import Check, WhyNot

MOST_SKIPPED = 50
"""Skipped candidates that the text lists; `--json` and `--queue` have all."""


def head(decision: Decision) -> str:
    times = f"{decision.n_times} times alike, last" if decision.n_times > 1 else "taken"
    return f"Decision {decision.id} of the policy {decision.policy}, {times} at {decision.last_at:%Y-%m-%d %H:%M:%S} UTC"


def story(explanation: Explanation | None) -> Iterator[str]:
    if explanation is None:
        yield "  its record is of a format that is no longer read"
        return
    yield f"  {explanation.verdict}"
    if explanation.funnel:
        yield f"  {explanation.candidates} candidate{'' if explanation.candidates == 1 else 's'}"
        yield from _funnel(explanation.funnel)
    if explanation.chosen:
        yield "  chosen, best first"
        yield from _chosen(explanation.chosen)
    if explanation.skipped:
        yield "  not chosen"
        yield from _skipped(explanation.skipped)
    if not explanation.detailed:
        yield "  reasons with numbers are gone: the snapshot is no longer kept, or the policy has changed since"


def against(answer: WhyNot) -> Iterator[str]:
    """The lines on one candidate: every criterion, then its weight."""
    first = f", {answer.first.criterion}: {answer.first.reason}" if answer.first else ""
    verdict = "chosen" if answer.chosen else f"not chosen{first}"
    yield f"  {answer.name}: {verdict}"
    width = max((len(c.criterion) for c in answer.checks), default=0)
    for check in answer.checks:
        sign = "ok  " if check.passed else "skip"
        yield f"    {sign} {check.criterion:{width}}  {check.reason or _passed(check)}".rstrip()
        yield from (f"         {' ' * width}  {line}" for line in _depends(check.depends_on))
    factors = " x ".join(f"{name} {_number(value)}" for name, value in answer.factors.items())
    would = "" if answer.chosen else " (what it would have had)"
    yield f"    weight {_number(answer.weight)} = {factors}{would}"


def what_if_report(result: WhatIf) -> Iterator[str]:
    """The lines of a what-if; with edits also what they change."""
    yield "If the brokerage looked now (nothing is written):"
    yield from story(result.before)
    yield from _jobs(result.jobs)
    if result.after is None:
        return
    yield ""
    yield "And with " + ", ".join(f"{e.name} = {_value(e.after)} (is {_value(e.before)})" for e in result.edits) + ":"
    yield f"  {result.after.verdict}"
    yield from _side_by_side(result.before, result.after)
    yield from _jobs(result.jobs_after)
    if not result.changed:
        yield "  no verdict changes"
        return
    yield "  changed"
    width = max(len(c.name) for c in result.changed)
    for change in result.changed[:MOST_SKIPPED]:
        yield f"    {change.name:{width}}  {change.before} -> {change.after}: {change.why_after}".rstrip(": ")
    if len(result.changed) > MOST_SKIPPED:
        yield f"    and {len(result.changed) - MOST_SKIPPED} more; --json has all"


def empty(answer: WhyEmpty) -> Iterator[str]:
    """The lines on a queue: how the latest decisions went for it."""
    yield f"Queue {answer.name}: {answer.verdict}"
    yield f"  latest decisions about tasks that have not ended: {answer.decisions}, of which {len(answer.chosen)} took it"
    if answer.absent:
        yield f"  in {answer.absent} it took no part"
    if not answer.tallies:
        return
    width = max(len(t.criterion) for t in answer.tallies)
    yield f"    {'':{width}}  {'first':>6} {'failed':>6} {'alone':>6}"
    for tally in answer.tallies:
        tasks = f"  tasks {', '.join(str(task) for task, _ in tally.examples)}" if tally.examples else ""
        yield f"    {tally.criterion:{width}}  {tally.first:>6} {tally.failed:>6} {tally.alone:>6}  {tally.kind}{tasks}"
    yield "  first: skipped it first; failed: would have skipped it too; alone: nothing else did"


def last_asks(answer: AsksAtQueue) -> Iterator[str]:
    """The lines on what pilots that asked at a queue got."""
    yield f"Queue {answer.queue}: what the last asks of pilots got"
    if not answer.counts and not answer.asks:
        yield "  no pilot has asked lately"
    if answer.counts:
        width = max(len(count.outcome) for count in answer.counts)
        yield f"    {'':{width}}  {'10 min':>8} {'hour':>8} {'day':>8}"
        for count in answer.counts:
            yield f"    {count.outcome:{width}}  {count.ten_minutes:>8} {count.hour:>8} {count.day:>8}  {count.text}"
    for ask in answer.asks:
        got = f"jobs {', '.join(map(str, ask.jobs))}" if ask.jobs else ask.text
        unknown = f"; not known of it: {', '.join(ask.unknown)}" if ask.unknown else ""
        yield f"  {ask.at:%Y-%m-%d %H:%M:%S} UTC pilot {ask.pilot_id}, {ask.took_ms:.1f} ms, {ask.offer}: {got}{unknown}"


def _jobs(explanation: Explanation | None) -> Iterator[str]:
    """The verdict of the job broker while the nucleus is not chosen."""
    if explanation is not None:
        yield f"  its jobs, by the policy {explanation.policy}, at whatever nucleus: {explanation.verdict}"
        yield from _funnel(explanation.funnel)


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
        values = []
        for remedy in remedies:
            if remedy.where == where:
                enough = "" if remedy.enough is None else f" (would do: {remedy.enough})"
                values.append(f"{remedy.name} {_value(remedy.value)}{enough}")
        if values:
            yield f"{words}: {', '.join(values)}"


def _value(value: object) -> str:
    if value is None or value == "" or value == ():
        return "not given"
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _passed(check: Check) -> str:
    """What a criterion asks that the candidate passed, with what it compared, as far as there was something."""
    known = {name: value for name, value in check.numbers.items() if value not in (None, "", [], ())}
    known.pop("what", None)  # what would be wrong with a weight
    numbers = ", ".join(f"{name} {f'{value:g}' if isinstance(value, float) else value}" for name, value in known.items())
    return f"{check.about} ({numbers})" if check.about and numbers else check.about or numbers


def _funnel(steps: Sequence[Step]) -> Iterator[str]:
    width = max((len(s.criterion) for s in steps), default=0)
    for step in steps:
        yield f"    {step.criterion:{width}}  {step.skipped:>5} skipped, {step.left:>5} left  ({step.kind})"


def _chosen(chosen: Sequence[ChosenCandidate]) -> Iterator[str]:
    width = max(len(c.name) for c in chosen)
    for choice in chosen:
        factors = " x ".join(f"{name} {value:.4g}" for name, value in choice.factors.items())
        yield f"    {choice.name:{width}}  weight {choice.weight:.4g} = {factors}"


def _skipped(skipped: Sequence[SkippedCandidate]) -> Iterator[str]:
    listed = skipped[:MOST_SKIPPED]
    width, label = max(len(s.name) for s in listed), max(len(s.criterion) for s in listed)
    for skip in listed:
        yield f"    {skip.name:{width}}  {skip.criterion:{label}}  {skip.reason}"
    if len(skipped) > len(listed):
        yield f"    and {len(skipped) - len(listed)} more; --json has all"


def _number(value: float | None) -> str:
    return "not a number" if value is None else f"{value:.4g}"
