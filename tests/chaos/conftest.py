"""What a chaos run did, told at the end of the tests."""

from __future__ import annotations

import pytest

told = pytest.StashKey[list[str]]()


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> list[str]:
    """Lines for the end of the report."""
    return request.config.stash.setdefault(told, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what the runs told."""
    for line in config.stash.get(told, []):
        terminalreporter.write_line(line)
