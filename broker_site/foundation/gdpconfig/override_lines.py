"""Lines of a change set that set or remove overrides of configuration keys."""

from __future__ import annotations

from collections.abc import Sequence

from broker_site.foundation.gdpconfig import keys
from broker_site.foundation.gdpconfig.changesets import Line, Place, Standing, Step
from broker_site.foundation.gdpconfig.models import Change, Override
from broker_site.foundation.gdpconfig.reading import forget_on_commit
from broker_site.foundation.kernel.verdict import Problem


class OverrideLines:
    """A temporary override over a lasting one remembers that in `afterwards`, which holds again when the time is over."""

    def check(self, line: Line) -> str:
        """The text in the canonical form of the key's type. BadConfig: unknown key, value of the wrong type or out of range."""
        return keys.KEYS.check(line.component, line.name, line.value, vo=line.vo, app=line.app)

    def standing(self, places: Sequence[Place]) -> dict[Place, Standing]:
        """The overrides at these places."""
        return {
            place: Standing(o.value, o.until, o.change.change_set_id, o.change.change_set.who)
            for place, o in _overrides(places).items()
        }

    def together(self, steps: Sequence[Step]) -> Sequence[Problem]:
        """Nothing: each key is judged by itself."""
        return ()

    def write(self, changes: Sequence[Change]) -> None:
        """Make the overrides those of the lines."""
        there = _overrides([change.place for change in changes])
        gone, changed, new = [], [], []
        for change in changes:
            override = there.get(change.place)
            if change.after is None:
                gone += [override.pk] if override else []
                continue
            lasting = None
            if change.until is not None and override is not None:
                lasting = override.value if override.until is None else override.afterwards
            if override is None:
                override = Override(app=change.app, component=change.component, name=change.name, vo=change.vo)
                new.append(override)
            else:
                changed.append(override)
            override.value, override.until, override.afterwards, override.change = change.after, change.until, lasting, change
        if gone:
            Override.objects.filter(pk__in=gone).delete()
        if changed:
            Override.objects.bulk_update(changed, ["value", "until", "afterwards", "change"])
        if new:
            Override.objects.bulk_create(new)
        forget_on_commit()


def _overrides(places: Sequence[Place]) -> dict[Place, Override]:
    wanted = set(places)
    rows = Override.objects.select_related("change__change_set").filter(name__in={place.name for place in wanted})
    return {override.place: override for override in rows if override.place in wanted}
