"""The stored form of a decision (decision B16): at most 8 KB at 1,000 candidates, equal decisions give equal bytes.

Stored are the verdict bits (the first criterion of a candidate is its lowest bit), the labels that the bits stand for, what was
chosen with weights and factors, and the outcome. The ask, the configuration values (`policy.keys`) and the snapshot are kept
beside it by the ledger. Not here: telling the story (`brokerage.rules.explain.explanation`).
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broker_site.foundation.gdpconfig.texts import thawed
from broker_site.foundation.kernel.verdict import Kind
from brokerage.rules.decision.declare import Policy
from brokerage.rules.decision.pipeline import Choice, PolicyDecision, decide, first_failed
from brokerage.rules.facts.ask import HIGH_PRIORITY, Ask, Config
from brokerage.rules.facts.columns import Columns

FORMAT = 1
"""Version of the byte format; a reader refuses any other."""


class BadRecord(ValueError):
    """Bytes that are not a stored decision of this format."""


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A stored decision as read: the decision, and the labels, kinds and factor names that its numbers stand for."""

    decision: PolicyDecision
    labels: tuple[str, ...]
    kinds: tuple[Kind, ...]
    factors: tuple[str, ...]


def encode(decision: PolicyDecision, policy: Policy) -> bytes:
    """The bytes of a decision that `policy` made."""
    head = {
        "policy": decision.policy,
        "version": decision.version,
        "seed": decision.seed,
        "outcome": decision.outcome,
        "closest": decision.closest,
        "wait_s": decision.wait_s,
        "candidates": decision.candidates,
        "n": len(decision.first),
        "labels": [criterion.label for criterion in policy.criteria],
        "persistent": [criterion.kind == "persistent" for criterion in policy.criteria],
        "factors": [factor.name for factor in policy.weights],
        "chosen": [[choice.row, choice.name, choice.weight, list(choice.factors)] for choice in decision.chosen],
    }
    if decision.eased:
        head["eased"] = list(decision.eased)
    text = json.dumps(head, separators=(",", ":"), allow_nan=False).encode()
    return bytes([FORMAT]) + zlib.compress(struct.pack("<I", len(text)) + text + decision.bits.tobytes(), 9)


def decode(packed: bytes) -> Record:
    """Read `encode`. Raises BadRecord."""
    if not packed or packed[0] != FORMAT:
        raise BadRecord("a stored decision of another format")
    try:
        raw = zlib.decompress(packed[1:])
        (size,) = struct.unpack_from("<I", raw)
        head = json.loads(raw[4 : 4 + size])
        bits = np.frombuffer(raw, np.uint8, offset=4 + size).reshape(len(head["labels"]), -1)
        kinds: tuple[Kind, ...] = tuple("persistent" if lasting else "temporary" for lasting in head["persistent"])
        return Record(_decision(head, bits), tuple(head["labels"]), kinds, tuple(head["factors"]))
    except (zlib.error, struct.error, ValueError, KeyError, TypeError) as error:
        raise BadRecord(f"a damaged stored decision: {error}") from error


def sameness(decision: PolicyDecision) -> str:
    """A digest that is equal for runs that are the same (decision B16): policy, candidates, first criteria and outcome.

    Weights may differ.
    """
    head = f"{decision.version} {decision.outcome} {decision.candidates} {len(decision.first)}\n".encode()
    return hashlib.sha256(head + decision.first.astype("<i2").tobytes()).hexdigest()


OF_THE_MOMENT = ("task_id", "waits_s", "usage", "chunk", "task_priority", "container_sources")
"""Fields of an ask that differ from run to run while the task stays as it is."""


def asked_alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two asks, as documents, say the same of the task, so that what is told of the one is true of the other: who is a
    scout, of which priority or nucleus, is a reason in words. Which files a chunk has, and how long it waited, may differ.
    """
    return _of_the_task(one) == _of_the_task(other)


def _of_the_task(ask: Mapping[str, Any]) -> dict[str, Any]:
    said = {name: value for name, value in ask.items() if name not in OF_THE_MOMENT}
    said["site of files"] = (ask.get("chunk") or {}).get("site")
    if said.get("priority", 0) < HIGH_PRIORITY:
        said["priority"] = None  # it often moves, and no reason names it
    return said


def replay(record: Record, policy: Policy, ask: Ask, columns: Columns, config: Config) -> bytes:
    """Take a stored decision again on its own snapshot, ask and configuration.

    The same bytes, as long as the policy is the same.
    """
    return encode(decide(policy, ask, columns, config, record.decision.seed), policy)


def config_of(policy: Policy, config: Config) -> dict[str, Any]:
    """The configuration values that a decision of this policy can have read, as JSON data: what to store beside it.

    Of a pattern (`NQUEUELIMITSITE_<gshare>`) every name that is filled in.
    """
    patterns = tuple(key.partition("<")[0] for key in policy.keys if "<" in key)
    names = [key for key in policy.keys if "<" not in key]
    names += [name for name in config if patterns and name.startswith(patterns) and name not in names]
    return {name: thawed(config[name]) for name in names}


def _decision(head: Mapping[str, Any], bits: NDArray[np.uint8]) -> PolicyDecision:
    return PolicyDecision(
        policy=head["policy"],
        version=head["version"],
        seed=head["seed"],
        outcome=head["outcome"],
        chosen=tuple(Choice(row, name, weight, tuple(factors)) for row, name, weight, factors in head["chosen"]),
        first=first_failed(np.unpackbits(bits, axis=1, count=head["n"]).astype(np.bool_)),
        bits=bits,
        closest=head["closest"],
        wait_s=head["wait_s"],
        candidates=head["candidates"],
        eased=tuple(head.get("eased", ())),
    )
