"""Who may do what: users, roles per VO, tokens, permissions, audit, and how refusals are told.

Not here: what the permitted thing does (the apps above), and configuration keys (`gdpconfig`).
"""
