"""Settings of a system with planted bugs: those of the product and the app that plants them."""

from broker_site.settings import *  # noqa: F403
from broker_site.settings import INSTALLED_APPS as _APPS

INSTALLED_APPS = [*_APPS, "tests.chaos.mutants.unfenced.Unfenced"]
