"""The conformance suites that rules of other packages pass in their tests: policies, splitters, transfer backends."""

from broker_site.roof.conformance.dispatch_policies import CHECKS as DISPATCH_POLICY_CHECKS
from broker_site.roof.conformance.policies import CHECKS as POLICY_CHECKS
from broker_site.roof.conformance.splitters import CHECKS as SPLITTER_CHECKS
from broker_site.roof.conformance.transfers import CHECKS as TRANSFER_CHECKS
from broker_site.roof.conformance.transfers import Trial as TransferTrial
