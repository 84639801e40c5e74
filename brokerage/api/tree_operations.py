"""What the OpenAPI document tells of the verbs of child brokers: their bodies, and their answers."""

from __future__ import annotations

from broker_site.foundation.rest.plain_operations import tells
from workqueues.rules.elements.messages import FetchWork, Pull, PullAnswer, Report, ReportAnswer, WorkAnswer

PULL = tells("A child broker pulls elements.", Pull, answers={200: ("What it got.", PullAnswer)}, refusals=[409])
WORK = tells(
    "The work of elements that a child broker has.", FetchWork, answers={200: ("Their work.", WorkAnswer)}, refusals=[409]
)
REPORT = tells(
    "What became of elements at a child broker.", Report, answers={200: ("An entry for each.", ReportAnswer)}, refusals=[409]
)
