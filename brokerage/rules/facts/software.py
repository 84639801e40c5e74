"""What queues publish of their software and hardware, and whether it is what a task wants (seed 000, releases=AUTO).

Here: the grammar of a task's architecture, and the checks for releases, containers and hardware over all queues. The document
that a queue publishes has cmtconfigs, containers, cvmfs, tags and architectures (facts on queues 5.5).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from brokerage.rules.facts.columns import Flags, Ints

CPU_ATTRIBUTES, GPU_ATTRIBUTES = ("arch", "vendor", "instr"), ("vendor", "model")
ANYTHING = ("", "any")

Wish = Mapping[str, str | None]
"""Attribute to wanted value of one piece of hardware; None = not named."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """A task's architecture, `platform<@base><#cpu><&gpu>`, in parts; None = part absent."""

    sw_platform: str | None
    base_platform: str | None
    cpu: Wish | None
    gpu: Wish | None

    @property
    def wishes_hardware(self) -> bool:
        """Whether the host's CPU or GPU is named."""
        return self.cpu is not None or self.gpu is not None


@lru_cache(maxsize=4096)
def parse_architecture(text: str | None) -> Architecture:
    """The parts of a task's architecture; cpu is `arch<-vendor<-instruction set>>`, gpu is `vendor<-model>`."""
    rest, _, gpu = (text or "").partition("&")
    rest, _, cpu = rest.partition("#")
    platform, _, base = rest.partition("@")
    return Architecture(platform or None, base or None, _wish(cpu, CPU_ATTRIBUTES), _wish(gpu, GPU_ATTRIBUTES))


def _wish(text: str, attributes: Sequence[str]) -> Wish | None:
    if not text:
        return None
    values = text.split("-", len(attributes) - 1)
    return {name: (values[i] or None) if i < len(values) else None for i, name in enumerate(attributes)}


def split_release(release: str | None) -> tuple[str, str]:
    """`project-version` as its two parts; without a hyphen all is the project."""
    project, _, version = (release or "").partition("-")
    return project, version


_PATTERN = re.compile(r"[*+?\[\]|^$(){}\\]")
"""What makes a platform a pattern; a dot alone does not."""

_GROUP = re.compile(r"\((?!\?)[^()]*\)(?![*+?])")
_NOT_READ = re.compile(r"[(){}\\]")
_MOST_REPEATS, _LONGEST = 4, 128
FITS_NOTHING = r"(?!)"
READ_AS = (
    f"at most {_LONGEST} characters and {_MOST_REPEATS} of * + ? and ( ), "
    "nothing repeated or nested in ( ), no curly brackets nor \\"
)
"""What a pattern may be."""


@dataclass(frozen=True, slots=True)
class Platform:
    """The software platform that a task wants: a name, or a pattern that the platforms of a queue are compared with.

    Patterns come from users and are compared in every cycle: with few repetitions and groups, so that none takes long. `pattern`
    is None for a name; one that is not `read` fits nothing.
    """

    text: str
    pattern: re.Pattern[str] | None
    read: bool = True

    @classmethod
    @lru_cache(maxsize=1024)
    def of(cls, text: str) -> Platform:
        """The platform that a text means."""
        if not _PATTERN.search(text):
            return cls(text, None)
        plain, groups = _GROUP.subn("", text)
        few = len(text) <= _LONGEST and groups + sum(map(text.count, "*+?")) <= _MOST_REPEATS
        try:
            if few and not _NOT_READ.search(plain):
                return cls(text, re.compile(text))
        except re.error:
            pass
        return cls(text, re.compile(FITS_NOTHING), read=False)

    @property
    def description(self) -> str:
        """The text, and what it would have to be where it is not read."""
        return self.text if self.read else f"{self.text}, a pattern that is not read: {READ_AS}"

    def among(self, names: Iterable[str]) -> bool:
        """Whether a platform of these names is the wanted one."""
        if self.pattern is None:
            return self.text in names
        return any(self.pattern.fullmatch(name) for name in names)


Offer = Mapping[str, tuple[str, ...]]
"""Attribute to published values of one piece of hardware; those not published are not there."""


@dataclass(frozen=True, slots=True)
class SoftwareDocument:
    """One published document, ready to be asked. `releases` are the names that the queue declares itself.

    `cpu` and `gpu` have an entry for each piece of hardware of the kind, none where nothing is published.
    """

    cvmfs: frozenset[str]
    containers: tuple[str, ...]
    cmtconfigs: frozenset[str]
    releases: frozenset[str]
    tags: frozenset[tuple[str, str, str]]
    images: frozenset[str]
    cpu: tuple[Offer, ...]
    gpu: tuple[Offer, ...]


@lru_cache(maxsize=8192)
def published(text: str) -> SoftwareDocument:
    """Read one document (JSON text; empty = nothing is published)."""
    document: Mapping[str, Any] = json.loads(text) if text else {}
    tags: Sequence[Mapping[str, Any]] = document.get("tags") or ()
    hardware: Sequence[Mapping[str, Any]] = document.get("architectures") or ()
    kinds: dict[str, list[Offer]] = defaultdict(list)
    for part in hardware:
        offer = {name: _texts(value) for name, value in part.items() if value and name != "type"}
        kinds[str(part.get("type", "")).lower()].append(offer)
    return SoftwareDocument(
        cvmfs=frozenset(document.get("cvmfs") or ()),
        containers=tuple(document.get("containers") or ()),
        cmtconfigs=frozenset(document.get("cmtconfigs") or ()),
        releases=frozenset(document.get("releases") or ()),
        tags=frozenset((tag.get("cmtconfig") or "", tag.get("project") or "", tag.get("release") or "") for tag in tags),
        images=frozenset(name for tag in tags for name in (tag.get("container_name"), *_texts(tag.get("sources") or ())) if name),
        cpu=tuple(kinds["cpu"]),
        gpu=tuple(kinds["gpu"]),
    )


def _texts(value: str | Sequence[str]) -> tuple[str, ...]:
    """The texts of a list; documents stored before they were read strictly may have one text instead."""
    return (value,) if isinstance(value, str) else tuple(value)


def container_sources(tags: Iterable[Mapping[str, Any]]) -> Mapping[str, tuple[str, ...]]:
    """Container -> its places, by the tags of the whole grid (the document of the queue `ALL`)."""
    sources: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for tag in tags:
        if name := tag.get("container_name"):
            sources[name] += _texts(tag.get("sources") or ())
    return sources


class SoftwareIndex:
    """The documents of all queues: each distinct one is asked once per question, answers are kept for the tasks of the cycle."""

    def __init__(self, texts: Sequence[str], codes: Ints) -> None:
        self._documents = [published(text) for text in texts]
        self._codes = codes
        self._answers: dict[Hashable, Flags] = {}

    def where(self, question: Hashable, holds: Callable[[SoftwareDocument], bool]) -> Flags:
        """The queues for whose document `holds`; `question` names it."""
        if question not in self._answers:
            verdicts = np.array([holds(document) for document in self._documents], dtype=np.bool_)
            self._answers[question] = verdicts[self._codes]
        return self._answers[question]

    def resolving(self, platform: Platform) -> Flags:
        """Where a pattern is the platform of something that is published."""
        return self.where(("platform", platform.text), lambda d: platform.among((*d.cmtconfigs, *(tag[0] for tag in d.tags))))

    def release(self, platform: Platform, project: str, version: str, nightly: bool) -> Flags:
        """Where the release runs: by its name, from cvmfs, or by a tag where any container may.

        Without project the platform alone counts.
        """
        return self.where(
            ("release", platform.text, project, version, nightly),
            lambda document: _release(document, platform, project, version, "nightlies" if nightly else "atlas"),
        )

    def container(self, name: str, only_tags: bool, sources: tuple[str, ...]) -> Flags:
        """Where the container can run; `sources` are its places by the tags of the whole grid."""
        return self.where(
            ("container", name, only_tags, sources), lambda document: _container(document, name, only_tags, sources)
        )

    def hardware(self, wished: Architecture) -> Flags:
        """Where the host has what the task names, and does not insist on something that it does not name."""
        cpu, gpu = wished.cpu or {}, wished.gpu or {}
        return self.where(
            ("hardware", tuple(cpu.items()), tuple(gpu.items())),
            lambda document: _offers(document.cpu, CPU_ATTRIBUTES, cpu) and _offers(document.gpu, GPU_ATTRIBUTES, gpu),
        )


def _release(document: SoftwareDocument, platform: Platform, project: str, version: str, cvmfs_tag: str) -> bool:
    anywhere = "any" in document.containers
    runs = anywhere or "/cvmfs" in document.containers or platform.among(document.cmtconfigs)
    if not project:
        return runs or not platform.text
    if f"{project}-{version}" in document.releases:
        return True
    if runs and ("any" in document.cvmfs or cvmfs_tag in document.cvmfs):
        return True
    return anywhere and platform.among(config for config, *name in document.tags if name == [project, version])


def _container(document: SoftwareDocument, name: str, only_tags: bool, sources: tuple[str, ...]) -> bool:
    if only_tags:
        return name in document.images
    if "any" in document.containers or "/cvmfs" in document.containers:
        return True
    return any(path.startswith(entry) for path in (name, *sources) for entry in document.containers if entry)


def _offers(offers: Sequence[Offer], attributes: Sequence[str], wished: Wish) -> bool:
    """Whether one of the pieces of hardware is what is wished; where none is published nothing may be wished."""
    if not offers:
        return not wished
    return any(all(_accepts(offer.get(name), wished.get(name)) for name in attributes) for offer in offers)


def _accepts(values: Sequence[str] | None, wanted: str | None) -> bool:
    """Whether a published list takes a wished value (decision B6); `excl` takes only tasks that name one."""
    if wanted is None:
        return values is None or "excl" not in values
    return values is not None and (wanted in values or any(value in ANYTHING for value in values))
