"""The client as one file: the same bytes each time, ready to run, and a place to import from."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

from broker_site.client import bundle


def test_it_is_the_same_each_time_and_runs_by_itself(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "folder" / "two"
    bundle.write(one)
    bundle.write(two)
    assert one.read_bytes() == two.read_bytes()
    assert stat.S_IMODE(one.stat().st_mode) == 0o755
    assert [each.name for each in two.parent.iterdir()] == ["two"]
    assert len(one.read_bytes()) < 100_000
    ran = subprocess.run([str(one), "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.startswith("usage: broker ")) == (0, True)


def test_python_imports_the_client_from_it(tmp_path: Path) -> None:
    bundle.write(tmp_path / "broker")
    script = "import sys; sys.path.insert(0, 'broker'); from broker_site.client import Client; print(Client('http://a', 't'))"
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, "Client object" in ran.stdout) == (0, True), ran.stderr
