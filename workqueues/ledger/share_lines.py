"""Lines of change sets that steer the share tree: the only writer of shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.gdpconfig.changesets import Place, Step
from broker_site.foundation.gdpconfig.models import Change
from broker_site.foundation.gdpconfig.row_lines import RowLines
from broker_site.foundation.kernel.verdict import Problem
from workqueues.models import GlobalShare
from workqueues.queries.steered_rows import SHARE, SHARE_COLUMNS, edited_share, share_row, shares_as_texts
from workqueues.rules.shares.editing import name_fault, orphans, tree_faults

LONGEST_VO = 32


class ShareLines(RowLines):
    """The name of a line is that of a share, unique over all VOs; tasks and jobs know the share by it."""

    kind, member = SHARE, "shares"
    columns = SHARE_COLUMNS

    def rows(self) -> dict[Place, str]:
        """All shares by VO and name."""
        return shares_as_texts()

    def name_problems(self, place: Place) -> Iterator[Problem]:
        """A share needs a VO."""
        if fault := name_fault(place.name):
            yield Problem("key", "name", fault)
        if not 0 < len(place.vo) <= LONGEST_VO or not place.vo.isprintable():
            yield Problem("vo", "vo", "a share belongs to one VO")

    def faults(self, steps: Sequence[Step], after: Mapping[Place, str]) -> Iterator[Problem]:
        """Faults of the trees, at the lines that caused them; at the first of the set where none of them did."""
        shares = [edited_share(place, text) for place, text in after.items()]
        lines = {step.place.name: step.number for step in steps}
        names = [share.name for share in shares]
        for step in steps:
            if step.after is not None and step.before is None and names.count(step.place.name) > 1:
                message = f"the name {step.place.name} is taken: names are unique over all VOs"
                yield Problem(f"lines[{step.number}].key", "unique", message)
            if step.after is None and (below := orphans(step.place.name, shares)):
                message = f"{step.place.name} cannot go while there are shares below it: {', '.join(below[:5])}"
                yield Problem(f"lines[{step.number}]", "children", message)
        for fault in tree_faults(shares, set(lines), {step.place.vo for step in steps}):
            number = lines.get(fault.share, steps[0].number)
            yield Problem(f"lines[{number}].{fault.column}", fault.rule, fault.message)

    def put(self, changes: Sequence[Change]) -> None:
        """Write the rows; the agent that counts what each share has is told."""
        gone = [change.name for change in changes if change.after is None]
        stand = [(change.before is None, share_row(change.place, change.after)) for change in changes if change.after is not None]
        changed = [row for new, row in stand if not new]
        GlobalShare.objects.bulk_update(changed, [column.name for column in self.columns])
        if gone:
            GlobalShare.objects.filter(name__in=gone).update(parent=None)  # one that goes too does not hold its parent
            GlobalShare.objects.filter(name__in=gone).delete()
        GlobalShare.objects.bulk_create([row for new, row in stand if new])
        look_after_commit("share")
