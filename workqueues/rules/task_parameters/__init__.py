"""What a task may say: the document of its parameters, and what is known of each."""

from workqueues.rules.task_parameters.declaration import Parameter
from workqueues.rules.task_parameters.document import TASK_PARAMETERS, TaskParameters, find, not_yet, read_parameters, stream_of

__all__ = ["TASK_PARAMETERS", "Parameter", "TaskParameters", "find", "not_yet", "read_parameters", "stream_of"]
