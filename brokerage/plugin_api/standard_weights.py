"""GridBroker's own weights, for policies of other packages."""

from brokerage.weights.analysis import running_over_all_queued
from brokerage.weights.nucleus import input_there, less_work_ahead, not_from_tape
from brokerage.weights.production import data_availability, network, running_over_queued, t1
from brokerage.weights.running import running_over_waiting
