"""What moves files for the agent `transfer`: a port, the backend `local` of ours, and those of other packages.

A backend is asked outside of transactions, and every question may be repeated. Not here: what is moved and when
(`brokerage.agents.transfer`), and the process that copies for `local` (`brokerage.mover`).
"""
