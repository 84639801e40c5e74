"""Admin pages of gdpconfig. Every write goes through `store`."""

from broker_site.gdpconfig.admin.changes import ChangeAdmin
from broker_site.gdpconfig.admin.overrides import OverrideAdmin

__all__ = ["ChangeAdmin", "OverrideAdmin"]
