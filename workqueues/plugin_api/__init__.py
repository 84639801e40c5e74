"""What a package of splitters, generators and post-processors imports of this app: its names stay when files inside it move."""

from workqueues.rules.jobs.job_parameters import JobFill
from workqueues.rules.jobs.post_processors import EndingTask, post_processor
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.by_events import by_events
from workqueues.splitters.by_files import by_files, pseudo
from workqueues.splitters.choice import SPLITTERS, splitter
from workqueues.splitters.generator import GeneratorTask, JobGenerator, generator
from workqueues.splitters.protocol import Dropped, Files, JobLimits, JobPlan, Portion, Secondary, Split, Splitter
