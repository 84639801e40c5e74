"""What a package of rules imports of the site: configuration keys here, the conformance suites for its tests in `suites`."""

from broker_site.foundation.gdpconfig import Config, Key, declare
