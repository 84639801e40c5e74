"""Working folders for servers of their own, which leave nothing behind."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from broker_site.roof.embedded import Instance
from broker_site.roof.embedded.place import STATE, shared_folder

Make = Callable[..., Instance]


def open_folder() -> Path:
    """A new working folder that every user can reach."""
    made = Path(tempfile.mkdtemp(prefix="gb-"))
    made.chmod(0o755)
    return made


def clean(root: Path) -> None:
    """End and remove all instances of a working folder, and the folder."""
    for each in (root / STATE).glob("*/lock"):
        assert Instance(each.parent.name, root=root).remove()
    shutil.rmtree(shared_folder(root), ignore_errors=True)
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A working folder for the tests of a file, so that its clusters are made once."""
    made = open_folder()
    yield made
    clean(made)


@pytest.fixture
def own_folder() -> Iterator[Path]:
    """A working folder for one test."""
    made = open_folder()
    yield made
    clean(made)


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """A working folder of mode 0700, as a home is: nobody else can reach it."""
    made = Path(tempfile.mkdtemp(prefix="gb-"))
    yield made
    clean(made)


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes instances, by default `one`, that know nothing of the environment; all are stopped after the test."""
    made: list[Instance] = []

    def build(root: Path, name: str = "one", environ: Mapping[str, str] | None = None, **more: Any) -> Instance:
        made.append(Instance(name, root=root, environ=environ or {}, **more))
        return made[-1]

    yield build
    for instance in made:
        if instance.folder.exists():
            instance.stop()
