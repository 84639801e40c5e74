"""The user of a run: submits tasks one after the other, each until the answer is definite, and writes down what was answered."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request

from tests.chaos.campaign import Campaign, task_parameters
from tests.chaos.history import History, wall_time

ACTOR = "user demo"
ATTEMPT_S = 2.0


class Submitter:
    """Submits the tasks of a campaign; a submission in doubt is repeated under its key."""

    def __init__(self, url: str, token: str, campaign: Campaign, history: History) -> None:
        self._url, self._token, self._campaign, self._history = f"{url}/api/v1/tasks/", token, campaign, history
        self.tasks: list[int] = []

    @property
    def done(self) -> bool:
        """Whether every task has been acknowledged."""
        return len(self.tasks) == self._campaign.tasks

    def next(self) -> bool:
        """Try once to submit the next task; whether it was acknowledged. RuntimeError when it is refused."""
        number, sent = len(self.tasks), wall_time()
        body = task_parameters(self._campaign, number)
        key = f"chaos-{self._campaign.seed}-{number}"
        status, answer = self._post(key, body)
        task = json.loads(answer)["id"] if status in (200, 201) else None
        self._history.add(
            "submit",
            ACTOR,
            key=key,
            name=body["taskName"],
            sent=sent,
            acked=wall_time() if status else None,
            answer=status,
            task=task,
        )
        if task is None and 400 <= status < 500 and status != 429:
            raise RuntimeError(f"{body['taskName']} was refused with {status}: {answer}")
        if task is not None:
            self.tasks.append(task)
        return task is not None

    def next_or_done(self) -> bool:
        """Try the next one, if there is one left; whether none is left."""
        return self.done or (self.next() and self.done)

    def _post(self, key: str, body: object) -> tuple[int, str]:
        """Status and body of the answer; 0 when none came."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json", "Idempotency-Key": key}
        request = urllib.request.Request(self._url, json.dumps(body).encode(), headers, method="POST")  # noqa: S310 - our own http URL
        try:
            with urllib.request.urlopen(request, timeout=ATTEMPT_S) as answer:  # noqa: S310
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode(errors="replace")
        except (OSError, http.client.HTTPException):
            return 0, ""
