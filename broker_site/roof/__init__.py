"""What stands above every app: addresses, the agents' table, operator commands, conformance, and the processes of one machine."""
