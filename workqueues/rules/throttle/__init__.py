"""How many new jobs a unit may have."""
