"""Pure foundations, standard library only: machine, clock, dice, registry, verdict. Nothing here knows Django."""
