"""What the documents promise is there: links, commands, make targets, files, addresses, configuration keys, variables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import PurePosixPath

import pytest
from django.core.management import get_commands
from django.urls import Resolver404, resolve

from broker_site.env import Env
from broker_site.foundation.agency.duties import GRACE_S, LATE_PERIODS
from broker_site.foundation.gdpconfig.keys import KEYS
from broker_site.roof.management.commands.criteria import page as page_of_criteria
from broker_site.roof.management.commands.states import MACHINES
from brokerage.rules.decision.declare import FILTERS, POLICIES
from monitoring.queries.jobs import JobRow
from tests.arch.source import ROOT, files, read
from workqueues.rules.task_parameters import TASK_PARAMETERS

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
COMMAND = re.compile(r"manage\.py ([a-z_]+)")
TARGET = re.compile(r"(?:`|^|\$ )make ([a-z]+)", re.MULTILINE)
ADDRESS = re.compile(r"(?<![\w.])(/(?:api/v1|admin|tasks|jobs|queues|agents|healthz|readyz|metrics)[\w/<>.\-]*)")
PATH = re.compile(r"`((?:broker_site|workqueues|brokerage|monitoring|tests|docs|examples|benchmarks|templates)/[\w./\-]+)`")
KEY = re.compile(r"`([a-z_]+)\.([A-Z][A-Za-z0-9_]*(?:<\w+>)?[A-Za-z0-9_]*)`")
JOBS_CUT = re.compile(r"jobs\.csv[^|\n]*\| cut -d, -f([\d,\-]+)")
ELSEWHERE = ("http://", "https://", "mailto:")
PAPER = re.compile(r"\bseed 00\d|\bfacts (?:on|\d)|\bdecisions? [A-Z]\d|\brows? [A-Z]\d")
"""What only we have: papers that code names as its sources."""

PAGES = [path for path in files() if path.endswith(".md")]


@cache
def anchors(path: str) -> frozenset[str]:
    """The anchors of a page, as GitHub makes them from its headings."""
    titles = HEADING.findall(FENCE.sub("", read(path)))
    return frozenset(re.sub(r"[^\w\- ]", "", title.lower().replace("`", "")).replace(" ", "-") for title in titles)


def _found(pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    for path in PAGES:
        yield from ((path, match) for match in pattern.findall(read(path)))


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    lost = []
    for link in LINK.findall(FENCE.sub("", read(page))):
        if link.startswith(ELSEWHERE):
            continue
        target, _, anchor = link.partition("#")
        path = page if not target else _resolved(page, target)
        if not (ROOT / path).exists() or (anchor and anchor not in anchors(path)):
            lost.append(link)
    assert not lost


def _resolved(page: str, target: str) -> str:
    parts: list[str] = []
    for part in (PurePosixPath(page).parent / target).parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


def test_every_command_of_a_page_exists() -> None:
    assert not [(page, name) for page, name in _found(COMMAND) if name not in get_commands()]


def test_no_text_for_users_names_a_paper_that_they_do_not_have() -> None:
    texts = {path: read(path) for path in (*PAGES, *(path for path in files() if path.endswith(".html")))}
    texts |= {str(key): key.doc for key in KEYS}
    texts |= {name: parameter.doc for name, parameter in TASK_PARAMETERS.items()}
    texts |= {f"criteria {policy.name}": "\n".join(page_of_criteria(policy)) for policy in POLICIES.values()}
    assert not [(name, found) for name, text in texts.items() for found in PAPER.findall(text)]


def test_every_make_target_of_a_page_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", read("Makefile"), re.MULTILINE))
    assert not [(page, name) for page, name in _found(TARGET) if name not in targets]


def test_every_file_that_a_page_names_exists() -> None:
    assert not [(page, path) for page, path in _found(PATH) if not (ROOT / path).exists()]


def test_columns_that_a_page_cuts_out_of_a_list_of_jobs_tell_job_and_state() -> None:
    cuts = list(_found(JOBS_CUT))
    assert cuts
    names = [field.name for field in fields(JobRow)]
    shown = {cut: {name for part in cut.split(",") for name in _columns(names, part)} for _, cut in cuts}
    assert not [cut for cut, columns in shown.items() if not {"id", "status"} <= columns]


def _columns(names: list[str], part: str) -> list[str]:
    """What `cut -f` takes: a number, a range, or all from a number on."""
    first, dash, last = part.partition("-")
    return names[int(first) - 1 : int(last or len(names)) if dash else int(first)]


def test_every_address_of_a_page_is_one_of_ours() -> None:
    lost = []
    for page, address in _found(ADDRESS):
        sample = re.sub(r"<[^>]*>", "1", address).rstrip(".")
        if sample != "/api/v1/" and not any(_leads(path) for path in (sample, f"{sample}/")):
            lost.append((page, address))
    assert not lost


def _leads(path: str) -> bool:
    try:
        resolve(path)
    except Resolver404:
        return False
    return True


def test_every_configuration_key_of_a_page_is_declared() -> None:
    components = {key.component for key in KEYS}
    lost = []
    for page in PAGES:
        for component, name in KEY.findall(read(page)):
            like = re.compile(re.sub(r"<\w+>", ".+", name))
            known = [key for key in KEYS if key.component == component and (like.fullmatch(key.name) or key.matches(name))]
            lost += [(page, component, name)] if component in components and not known else []
    assert not lost


def test_the_page_on_the_environment_has_every_variable() -> None:
    documented = set(re.findall(r"^\| `([A-Z_]+)` \|", read("docs/reference/environment.md"), re.MULTILINE))
    read_by_env = set(re.findall(r'validation_alias="([A-Z_]+)"', read("broker_site/env.py")))
    assert read_by_env
    assert documented == read_by_env
    assert len(fields(Env)) <= len(read_by_env)


def test_no_criterion_is_both_built_and_listed_as_not_built() -> None:
    listed = re.findall(r"^\| `-([\w]+)` \| (\w+) \|", read("docs/reference/criteria.md"), re.MULTILINE)
    assert listed
    built = {(criterion.label, policy.name) for policy in POLICIES.values() for criterion in policy.criteria}
    assert FILTERS
    assert not built & set(listed)


def test_the_page_on_states_has_the_final_states_of_every_machine() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `.*\| ([\w, ]+) \|$", read("docs/reference/states.md"), re.MULTILINE)
    assert {name: sorted(final.split(", ")) for name, final in rows} == {n: sorted(m.final) for n, m in MACHINES.items()}


def test_the_page_on_configuration_has_every_component() -> None:
    page = read("docs/reference/configuration.md")
    assert not {key.component for key in KEYS if f"`{key.component}`" not in page}


def test_the_page_on_operating_says_when_an_agent_is_late() -> None:
    assert LATE_PERIODS == 3
    assert f"late when three of its periods and {GRACE_S:g} s have passed" in read("docs/how-to/operate.md")
