"""One server for all tests of a file: each uses names of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.storage_server.serving import Serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    serving = Serving(tmp_path_factory.mktemp("storage"))
    yield serving
    serving.stop()
