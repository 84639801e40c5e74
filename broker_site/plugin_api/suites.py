"""The conformance suites that policies, splitters and transfer backends of other packages pass in their tests."""

from broker_site.roof.conformance.policies import CHECKS as POLICY_CHECKS
from broker_site.roof.conformance.splitters import CHECKS as SPLITTER_CHECKS
from broker_site.roof.conformance.transfers import CHECKS as TRANSFER_CHECKS
from broker_site.roof.conformance.transfers import Trial as TransferTrial
