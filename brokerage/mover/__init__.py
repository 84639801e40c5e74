"""The process that copies files for the transfer backend `local`: `manage.py mover`.

Here: claiming, copying, and telling how it ended. Not here: which files, and what follows (`brokerage.agents.transfer`).
"""
