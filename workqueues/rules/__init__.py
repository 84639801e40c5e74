"""Pure decisions of demand: frozen facts in, frozen answers out. No Django, no clock, no random numbers, no I/O."""
