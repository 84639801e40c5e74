"""`manage.py states [MACHINE]`: the state machines as Markdown, each with its table and its drawing; needs no database."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand

import brokerage.states
import workqueues.states
import workqueues.states.elements
from broker_site.foundation.kernel.machine import NEW, Machine

GUARDED = (*workqueues.states.GUARDED, *workqueues.states.elements.GUARDED, *brokerage.states.GUARDED)
MACHINES = {machine.name: machine for machine, _, _ in GUARDED}


class Command(BaseCommand):
    help = "Print the states and moves of a machine, or of all, as Markdown with a Mermaid drawing."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("machine", nargs="?", choices=MACHINES, metavar="MACHINE", help=f"one of {', '.join(MACHINES)}")

    def handle(self, *args: Any, **options: Any) -> None:
        chosen = [MACHINES[options["machine"]]] if options["machine"] else MACHINES.values()
        self.stdout.write("\n\n".join("\n".join(page(machine)) for machine in chosen))


def page(machine: Machine) -> Iterator[str]:
    yield f"## {machine.name}"
    yield ""
    yield f"Live: {', '.join(machine.live)}.  "
    yield f"Final: {', '.join(s for s in machine.states if s in machine.final)}."
    yield ""
    yield "| event | from | to |"
    yield "|---|---|---|"
    for event in dict.fromkeys(t.event for t in machine.transitions):
        for sources, targets in _arrows(machine, event):
            yield f"| {event} | {', '.join(sources)} | {', '.join(targets)} |"
    yield ""
    yield "```mermaid"
    yield machine.drawing()
    yield "```"


def _arrows(machine: Machine, event: str) -> Iterator[tuple[list[str], tuple[str, ...]]]:
    """The moves of one event, sources with the same targets together."""
    sources: dict[tuple[str, ...], list[str]] = {}
    for source in dict.fromkeys(t.source for t in machine.transitions if t.event == event):
        targets = tuple(t.target for t in machine.transitions if (t.event, t.source) == (event, source))
        sources.setdefault(targets, []).append("(new)" if source == NEW else source)
    yield from ((names, targets) for targets, names in sources.items())
