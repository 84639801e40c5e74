"""What plugins do with the outputs of a task when it ends well (`outputPostProcessing`): a function under a name, declared with
`@post_processor`.

Here: what it is told, and the registry. Not here: when it is called (the agent finish, outside of transactions).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from broker_site.foundation.kernel.registry import Registry


@dataclass(frozen=True, slots=True)
class EndingTask:
    """A task that is about to end. `status`: how; `outputs`: its datasets; `settings`: what the task says beside the name."""

    id: int
    vo: str
    user: str
    status: str
    outputs: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


PostProcessor = Callable[[EndingTask], str]
"""What it answers is told with the end of the task; what it raises keeps the task from ending, and it is called again. It may be
called again in any case: the same task must not be processed twice by that.
"""

POST_PROCESSORS: Registry[PostProcessor] = Registry("post-processor")


def post_processor(name: str) -> Callable[[PostProcessor], PostProcessor]:
    """Declare a post-processor; the function stays as it is. ValueError if the name is taken."""

    def declare(process: PostProcessor) -> PostProcessor:
        return POST_PROCESSORS.add(name, process)

    return declare
