"""Configuration keys of the brokerage: which there are, what they mean and what holds without an override.

Importing this package declares them all: `job_brokers` what every job broker and production read, `analysis`, `nucleus` the task
broker, `job_limits` the limits of job states and what pilots are told, `policies` which policy decides and which generator makes
the jobs, `feeds` where the grid comes from and how old it may be.
"""

from brokerage.config_keys import analysis, feeds, job_brokers, job_limits, nucleus, policies
from brokerage.config_keys.job_limits import SERVER

__all__ = ["SERVER", "analysis", "feeds", "job_brokers", "job_limits", "nucleus", "policies"]
