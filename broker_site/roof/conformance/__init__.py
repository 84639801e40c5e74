"""Conformance cases run against the real decision functions. Standard library only, but for what the functions themselves import.

`cases` reads and compares, `registry` knows which function answers which case, `families` maps each family to its function by
renaming and unit conversion, `runner` runs files of cases. `python -m broker_site.roof.conformance FILE...` needs neither
database nor Django. `policies` is the suite that every brokerage policy passes, also one of a plugin.
"""
