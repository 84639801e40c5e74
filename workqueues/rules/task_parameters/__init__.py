"""What a task may say: the document of its parameters, and what is known of each."""

from workqueues.rules.task_parameters.document import TASK_PARAMETERS, TaskParameters, find, not_yet, read_parameters
from workqueues.rules.task_parameters.parameter import Parameter, found, problem, read

__all__ = ["TASK_PARAMETERS", "Parameter", "TaskParameters", "find", "found", "not_yet", "problem", "read", "read_parameters"]
