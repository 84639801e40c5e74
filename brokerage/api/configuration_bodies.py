"""What REST shows of the configuration and its changes, and what is asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers

from broker_site.foundation.gdpconfig.changesets import CONFIG, MAX_TICKET, MAX_WHY, MOST_LINES, Line, in_words, named_line
from broker_site.foundation.gdpconfig.effects import Effects
from broker_site.foundation.gdpconfig.listing import Effective, Setting
from broker_site.foundation.gdpconfig.models import Change, ChangeSet
from broker_site.foundation.gdpconfig.texts import MAX_TEXT
from brokerage.queries.config_replay import Replay
from brokerage.queries.steering_trial import SteeringTrial
from brokerage.queries.submission_trial import SubmissionTrial
from workqueues.api.serializers import StrictBody

FIRST_LINES = 20
"""Lines of a set that lists show."""
MOST_CANDIDATES = 100
"""Candidates that a dry run names, the most concerned first."""


class ChangeLineAsked(StrictBody):
    """One thing to change: a key of the configuration, a share or a work queue."""

    kind = serializers.CharField(
        max_length=16, default=CONFIG, help_text="config: a key; share: a row of the share tree; work_queue: a work queue"
    )
    key = serializers.CharField(
        max_length=260,
        help_text="component and name, parts filled in: `jobbroker.NQUEUELIMITSITE`; of another app `app:X.NAME`; of a share its "
        "name; of a work queue its name, with its label after a slash where it has one",
    )
    vo = serializers.CharField(
        max_length=32, default="", allow_blank=True, help_text="for one VO; without it for all; of a row its VO"
    )
    value = serializers.JSONField(
        allow_null=True,
        help_text="what shall hold: a text of the key's type, or a JSON value; of a row an object with its columns, those "
        "that are left out have their default; null removes the override or the row",
    )
    until = serializers.DateTimeField(
        default=None, allow_null=True, help_text="when it ends by itself, and the lasting override or the default holds again"
    )
    before = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, trim_whitespace=False, max_length=MAX_TEXT,
        help_text="the override that you saw, null for none: refused if it is another by now",
    )  # fmt: skip


class ReasonAsked(StrictBody):
    """Why, and whether it is only tried."""

    reason = serializers.CharField(max_length=MAX_WHY, help_text="kept in the history")
    dry_run = serializers.BooleanField(default=False, help_text="true: nothing is written, the answer says what would be")


class ChangesAsked(ReasonAsked):
    """Lines that are applied together or not at all."""

    lines = serializers.ListField(child=serializers.DictField(), min_length=1, help_text=f"at most {MOST_LINES}")
    ticket = serializers.CharField(max_length=MAX_TICKET, default="", allow_blank=True)
    base = serializers.IntegerField(
        min_value=0, max_value=(1 << 63) - 1, default=None, allow_null=True,
        help_text="the revision that you looked at: a line whose override was changed since is refused",
    )  # fmt: skip


class ConfigurationChangesAsked(ChangesAsked):
    """The body as the document shows it: `ChangesAsked` looks at the number of lines before it reads any."""

    lines = ChangeLineAsked(many=True, min_length=1, help_text=f"at most {MOST_LINES}")  # type: ignore[assignment, call-arg]


def asked_lines(lines: list[Any]) -> list[Line]:
    """The lines of a body; ValidationError with the faults of each by its place. Too many are left to the service to refuse."""
    if len(lines) > MOST_LINES:
        return [Line("", "")] * len(lines)
    bodies = [ChangeLineAsked(data=line) for line in lines]
    if wrong := {f"lines[{i}]": body.errors for i, body in enumerate(bodies) if not body.is_valid()}:
        raise serializers.ValidationError(wrong)
    return [_line(body.validated_data) for body in bodies]


def _line(said: Mapping[str, Any]) -> Line:
    return named_line(
        said["kind"],
        said["key"],
        said["vo"],
        said["value"],
        remove=said["value"] is None,
        until=said["until"],
        says_before="before" in said,
        before=said.get("before"),
    )


class KeyOverrideShown(serializers.Serializer[Setting]):
    """An override that is set."""

    name = serializers.CharField(help_text="the key's name with its parts filled in")
    vo = serializers.CharField(help_text="empty: for all VOs without one of their own")
    value = serializers.CharField(source="text")
    until = serializers.DateTimeField(allow_null=True, help_text="when it ends by itself")
    afterwards = serializers.CharField(allow_null=True, help_text="the lasting override that holds again then; null: none")
    revision = serializers.IntegerField(source="change.change_set_id")
    who = serializers.CharField(source="change.who")
    why = serializers.CharField(source="change.why")
    at = serializers.DateTimeField(source="change.at")
    fault = serializers.CharField(help_text="why it is not used; empty: it is")


class ConfigKeyShown(serializers.Serializer[Effective]):
    """A key with its overrides; values are texts as one sets them."""

    key = serializers.SerializerMethodField()
    app = serializers.CharField()
    component = serializers.CharField()
    name = serializers.CharField()
    declared = serializers.SerializerMethodField(help_text="false: overrides of a key that is gone; they have no effect")
    type = serializers.SerializerMethodField()
    unit = serializers.SerializerMethodField()
    bounds = serializers.SerializerMethodField(help_text="range, choices or form, in words")
    doc = serializers.SerializerMethodField()
    default_value = serializers.CharField(source="default")
    effective = serializers.CharField(help_text="for VOs without an override of their own; of a pattern the default")
    overrides = KeyOverrideShown(source="settings", many=True)

    def get_key(self, row: Effective) -> str:
        return row.written

    def get_declared(self, row: Effective) -> bool:
        return row.key is not None

    def get_type(self, row: Effective) -> str:
        return row.key.type if row.key else ""

    def get_unit(self, row: Effective) -> str:
        return row.key.unit if row.key else ""

    def get_bounds(self, row: Effective) -> str:
        return row.key.bounds if row.key else ""

    def get_doc(self, row: Effective) -> str:
        return row.key.doc if row.key else ""


class ConfigurationShown(serializers.Serializer[Any]):
    """The configuration at one revision."""

    revision = serializers.IntegerField(help_text="number of the last change set: the `base` of a change that rests on this")
    results = ConfigKeyShown(many=True)


class ChangeLineShown(serializers.ModelSerializer[Change]):
    """One line of a change set."""

    key = serializers.CharField(source="place.key")
    words = serializers.SerializerMethodField(help_text="what it changes, short")

    def get_words(self, line: Change) -> str:
        return in_words(line.kind, line.before, line.after)

    class Meta:
        model = Change
        fields = ("kind", "key", "app", "component", "name", "vo", "before", "until_before", "after", "until", "words")
        read_only_fields = fields


class ChangeSetShown(serializers.ModelSerializer[ChangeSet]):
    """What somebody changed at once."""

    reverts = serializers.IntegerField(source="reverts_id", allow_null=True, help_text="the set that this one takes back")
    lines = ChangeLineShown(many=True, help_text="those that you may see")
    n_hidden = serializers.IntegerField(help_text="lines for VOs that you may not look into, which are left out")

    class Meta:
        model = ChangeSet
        fields = ("revision", "at", "who", "why", "ticket", "source", "approved_by", "reverts", "lines", "n_hidden")
        read_only_fields = fields


class ChangeSetListed(ChangeSetShown):
    """The same in the list, with the first lines of it."""

    n_lines = serializers.IntegerField()
    lines = ChangeLineShown(many=True, source="first_lines", help_text=f"the first {FIRST_LINES}")

    class Meta:
        model = ChangeSet
        fields = (*ChangeSetShown.Meta.fields, "n_lines")
        read_only_fields = fields


DRY_RUN = inline_serializer(
    "ConfigurationDryRun",
    {
        "revision": serializers.IntegerField(
            allow_null=True, help_text="the newest when it was looked at: the `base` to apply it on; null: nothing would differ"
        ),
        "lines": serializers.ListField(
            child=serializers.DictField(),
            help_text="key, vo, before, until_before, after, until, differs; effective_before, effective_after: what holds",
        ),
        "decisions": serializers.DictField(
            allow_null=True,
            required=False,
            help_text="kept decisions of the brokerage taken again with both values: in words (`sentence`), how many "
            "(`decisions`), unchanged, gain, lose, to_pending, to_assign, kept, unreadable, oldest, newest, and `candidates` "
            "(name, gained, lost)",
        ),
        "steering": serializers.DictField(
            allow_null=True,
            required=False,
            help_text="of lines for shares and work queues: in words (`sentence`); `moments` of the last hour with work, in "
            "`reordered` of which shares would have been served in another order; `shares` that come out otherwise, with "
            "percent, entitled (jobs) and place (1 = first) before and after; `verdicts` of the throttler of the last hour "
            "and `tasks` of the last day that were looked at, and which would be others (what, before, after, n)",
        ),
        "submission": serializers.DictField(
            allow_null=True,
            required=False,
            help_text="of lines for sites, and for keys of submission: in words (`sentence`); `thresholds` that would be others "
            "(site, kind, empty: all; state, pending and running before and after; now: what waits and runs), and how many of "
            "the first `jobs` that wait would be `submitted` (site, before, after)",
        ),
    },
)


def dry_run_document(
    effects: Effects, replay: Replay | None, trial: SteeringTrial | None, submission: SubmissionTrial | None
) -> dict[str, Any]:
    """What a dry run says, as JSON data; `replay` None where no key is touched, `trial` where no share or work queue is,
    `submission` where no threshold is.
    """
    return {
        "revision": effects.revision,
        "lines": [
            {
                "kind": effect.place.kind,
                "key": effect.place.key,
                "vo": effect.place.vo,
                **{name: getattr(effect, name) for name in ("before", "until_before", "after", "until")},
                "effective_before": effect.effective_before,
                "effective_after": effect.effective_after,
                "differs": effect.differs,
            }
            for effect in effects.lines
        ],
        "decisions": _decisions(replay) if replay is not None else None,
        "steering": steering_document(trial) if trial is not None else None,
        "submission": submission_document(submission) if submission is not None else None,
    }


def submission_document(trial: SubmissionTrial) -> dict[str, Any]:
    """What a change of thresholds would mean, as JSON data."""
    return {
        "sentence": trial.sentence,
        "thresholds": [asdict(one) for one in trial.thresholds],
        "submitted": [{"site": site, "before": before, "after": after} for site, (before, after) in trial.submitted.items()],
        "jobs": trial.jobs,
        "more": trial.more,
    }


def steering_document(trial: SteeringTrial) -> dict[str, Any]:
    """What a change of shares or work queues would have meant, as JSON data."""
    shares = [
        {"vo": vo, "share": share.name, **{name: list(getattr(share, name)) for name in ("percent", "entitled", "place")}}
        for vo, share in trial.outcomes()
    ]
    return {
        "sentence": trial.sentence,
        "moments": sum(tree.moments for tree in trial.trees.values()),
        "reordered": sum(tree.reordered for tree in trial.trees.values()),
        "shares": shares,
        "verdicts": trial.verdicts,
        "verdicts_changed": [asdict(change) for change in trial.verdicts_changed],
        "tasks": trial.tasks,
        "tasks_kept": trial.kept,
        "tasks_changed": [asdict(change) for change in trial.tasks_changed],
    }


def _decisions(replay: Replay) -> dict[str, Any]:
    tally = replay.tally
    names = ("decisions", "untouched", "unchanged", "gain", "lose", "to_pending", "to_assign")
    candidates = list(tally.candidates())[:MOST_CANDIDATES]
    return {
        "sentence": replay.sentence,
        **{name: getattr(tally, name) for name in names},
        "kept": replay.kept,
        "unreadable": replay.unreadable,
        "oldest": replay.oldest,
        "newest": replay.newest,
        "candidates": [{"name": name, "gained": gained, "lost": lost} for name, gained, lost in candidates],
    }
