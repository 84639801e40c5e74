"""Pure decisions of supply and match: frozen data in, frozen data out. No Django, no clock, no random but seeded dice, no I/O."""
