"""What jobs that are about to be made wish to have brought, and as what it counts on its way. Pure."""

from __future__ import annotations

from typing import NamedTuple

from brokerage.rules.grid.measurements import EXPRESS
from brokerage.rules.transfers.wishes import ANALYSIS_INPUT, PRODUCTION_INPUT, STAGING, FileWish, is_express
from workqueues.rules.jobs.activity import activity_of


class Wisher(NamedTuple):
    """The task for whose jobs files are brought."""

    task_id: int
    vo: str
    label: str
    processing_type: str
    priority: int
    share: str
    user: str
    group: str

    @property
    def owner(self) -> str:
        """For whom it counts: the working group where it has one, else the user."""
        return owner_of(self.user, self.group)

    @property
    def express(self) -> bool:
        """Whether its files go before those of others."""
        return is_express(self.processing_type, self.priority)

    def activity(self, *, on_tape: bool) -> str:
        """As what it counts on its link (row J22): express first of all."""
        if self.express:
            return EXPRESS
        if on_tape:
            return STAGING
        return ANALYSIS_INPUT if activity_of(self.label) == "analysis" else PRODUCTION_INPUT

    def wish(self, file_id: int, destination: str, dataset_id: int, job_id: int | None, *, on_tape: bool) -> FileWish:
        """A file of the catalogue that a job needs, or (no job) one that is staged for the task before its jobs are made."""
        return FileWish(
            file_id,
            destination,
            "stage" if on_tape else "input",
            self.activity(on_tape=on_tape),
            self.vo,
            self.owner,
            self.share,
            self.priority,
            self.express,
            job_id,
            self.task_id,
            dataset_id,
        )


def owner_of(user: str, group: str) -> str:
    """Who is meant by the user and the working group of a task."""
    return f"group:{group}" if group else user
