"""The conformance suites that policies and splitters of other packages pass in their tests."""

from broker_site.roof.conformance.policies import CHECKS as POLICY_CHECKS
from broker_site.roof.conformance.splitters import CHECKS as SPLITTER_CHECKS
