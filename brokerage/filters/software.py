"""Whether the nodes of a queue have the release, the container, the hardware and the network that a task wants."""

from __future__ import annotations

from brokerage.rules.decision.declare import Criterion, Numbers, filter, filters
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.facts.software import Architecture, Platform, parse_architecture, split_release

SoftwareVerdicts = tuple[Flags | bool, Flags | bool, Flags | bool, Flags | bool]


@filters(
    Criterion("regexpcmtconfig", "nothing there is of a platform like {pattern}"),
    Criterion("cache", "the release {release} for {platform} is not there"),
    Criterion("cache", "the container {container} is not there"),
    Criterion("cache", "it does not offer the hardware of {architecture}, or wants tasks that name theirs"),
)
def software(ask: Ask, queues: Queues, _config: Config) -> tuple[SoftwareVerdicts, Numbers]:
    """Release or container, and hardware, by what the queue publishes; ANY in its releases takes all without hardware wishes.

    A task with a container needs no release. A platform that is a pattern must be that of something published.
    Source: seed 000, releases=AUTO; facts on the brokerage 2.3 row 12; decision B6.
    """
    wished = parse_architecture(ask.architecture)
    platform, container = Platform.of(wished.sw_platform or ""), ask.container_name or ""
    numbers = {
        "release": ask.release or "wanted",
        "platform": platform.text or "any platform",
        "pattern": platform.description,
        "container": container,
        "architecture": ask.architecture or "the task",
    }
    wish = (ask.architecture, ask.release, container, ask.container_sources, ask.nightly, ask.only_tags_for_fc)
    return queues.derived(
        ("software", wish), lambda table: _software_verdicts(ask, wished, platform, table), ("software", "any_release")
    ), numbers


def _software_verdicts(ask: Ask, wished: Architecture, platform: Platform, queues: Queues) -> SoftwareVerdicts:
    unchecked, published, container = queues.any_release, queues.published, ask.container_name
    if unchecked.all() and not wished.wishes_hardware:
        return True, True, True, True
    project, version = split_release(ask.release)
    pattern = True if platform.pattern is None else published.resolving(platform) | unchecked
    release = True if container else published.release(platform, project, version, ask.nightly) | unchecked
    image: Flags | bool = True
    if container:
        image = published.container(container, ask.only_tags_for_fc, ask.container_sources) | unchecked
    offered = published.hardware(wished)
    return pattern, release, image, offered if wished.wishes_hardware else offered | unchecked


ACCEPTED = {"full": ("full", "http", "none"), "http": ("http", "none"), "none": ("none",)}
"""Connectivity of a queue -> what tasks may want there; a queue that says nothing is taken as full."""


def accepts(queue: str | None, task: str | None) -> bool:
    """Whether the nodes suit the task; what the task does not set is not checked.

    A queue with a stack takes tasks that ask for that stack or for none; one without a stack those that ask for none.
    """
    offered, _, offered_stack = (part.strip() for part in (queue or "").partition("#"))
    wanted, _, wanted_stack = (part.strip() for part in (task or "").partition("#"))
    if wanted and wanted not in ACCEPTED.get(offered or "full", ()):
        return False
    return not wanted_stack or wanted_stack == offered_stack


@filter("network", "the task wants {wanted}, its nodes have {wnconnectivity}")
def connectivity(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """wnconnectivity suits the ipConnectivity of the task, if it sets any. Source: seed 000; decisions B7, B20."""
    wanted = f"{ask.ip_connectivity or ''}{f'#{ask.ip_stack}' if ask.ip_stack else ''}"
    numbers = {"wanted": wanted, "wnconnectivity": queues.wnconnectivity}
    if not wanted:
        return True, numbers
    accepting = queues.where_text("wnconnectivity", wanted, lambda offered: accepts(offered, wanted))
    return accepting, numbers
