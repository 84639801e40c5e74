"""GridBroker's own weights, for policies of other packages."""

from brokerage.weights.nucleus import input_there, less_work_ahead, not_from_tape
from brokerage.weights.queues import (
    data_availability,
    network,
    running_over_all_queued,
    running_over_queued,
    running_over_waiting,
    t1,
)
