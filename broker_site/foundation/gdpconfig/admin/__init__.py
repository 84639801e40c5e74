"""Admin pages of gdpconfig. Every write goes through `store`."""

from broker_site.foundation.gdpconfig.admin.changes import ChangeAdmin
from broker_site.foundation.gdpconfig.admin.overrides import OverrideAdmin

__all__ = ["ChangeAdmin", "OverrideAdmin"]
