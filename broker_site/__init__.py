"""GridBroker's site: wiring, operator commands and what every app stands on."""
