"""What the how-to pages print can be copied as it stands: files are read, commands are parsed, and what is quick is run."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from broker_site.env import Env
from broker_site.roof.embedded import Instance, Services
from broker_site.roof.supervisor import System
from broker_site.roof.supervisor.system import WEB_LIMITS, _beat, _worker
from broker_site.roof.supervisor.watch import Supervisor

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*/*.md"))
BLOCK = re.compile(r"^ *```(\w+)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
INSTALL = ROOT / "docs" / "how-to" / "install.md"
PLUGIN = {"lab-production", "lab_runs"}
"""Names that are known only where the plugin of the page is installed."""
SHOW = "import json, os; print(json.dumps(dict(os.environ)))"


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of the page, its file and its key made and read as the page says, in another folder."""
    (settings,) = (text for text in blocks(INSTALL, "sh") if text.startswith("# /etc/gridbroker/env"))
    (key,) = (text for text in blocks(INSTALL, "sh") if "secret-key" in text and "token_urlsafe" in text)
    (read,) = (text for text in blocks(INSTALL, "sh") if text.startswith("set -a"))
    (tmp_path / "env").write_text(settings.replace("/etc/gridbroker", str(tmp_path)))
    script = (key + read).replace("/etc/gridbroker", str(tmp_path)) + f"{sys.executable} -c {shlex.quote(SHOW)}\n"
    ran = subprocess.run(
        ["/bin/sh", "-e", "-c", script], cwd=ROOT, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return dict(json.loads(ran.stdout))


def test_the_printed_environment_is_read_whole_by_a_shell_and_by_systemd(tmp_path: Path) -> None:
    by_shell = installed(tmp_path)
    env = Env.read(by_shell)
    assert env.profile == "production"
    assert env.proxy_header == ("HTTP_X_FORWARDED_PROTO", "https")
    lines = [line for line in (tmp_path / "env").read_text().splitlines() if not line.startswith("#")]
    by_systemd = dict(shlex.split(line)[0].split("=", 1) for line in lines)
    assert by_systemd.items() <= by_shell.items()


def test_the_printed_environment_passes_the_checks_for_production(tmp_path: Path) -> None:
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    ran = subprocess.run(command, cwd=ROOT, env=installed(tmp_path), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_printed_commands_are_commands(page: Path) -> None:
    for text in blocks(page, "sh"):
        parsed = subprocess.run(["/bin/sh", "-n"], input=text, capture_output=True, text=True)
        assert parsed.returncode == 0, f"{text}\n{parsed.stderr}"
        for arguments in re.findall(r"manage\.py (.*)", text.replace("\\\n", " ")):
            before, _, _ = arguments.partition("'")
            whole = arguments if arguments.count("'") % 2 == 0 else f"{before}text"  # a text of many lines
            words = shlex.split(re.sub(r"\$\w+", "1", whole), comments=True)
            if not PLUGIN & set(words):
                _parse_command(words)


def _parse_command(words: list[str]) -> None:
    """SystemExit when the command does not know an argument."""
    end = next((n for n, word in enumerate(words) if word in (">", "|", "&&", ";")), len(words))
    name, *arguments = words[:end]
    command = load_command_class(get_commands()[name], name)
    command.create_parser("manage.py", name).parse_args(arguments)


def test_printed_units_start_what_the_supervisor_starts(services: Services) -> None:
    instance = Instance("test")
    system = System(instance, Supervisor(instance.folder, print), services, "http://127.0.0.1:8000", ROOT, {})
    printed = [line for text in blocks(INSTALL, "sh") for line in text.splitlines() if "-m celery" in line]
    for line, spec in zip(printed, (_worker(system), _beat(system)), strict=True):
        own = [word for word in spec.command[1:] if word != "--hostname" and "@" not in word]
        assert shlex.split(line)[1:] == own


def test_the_printed_unit_of_the_web_server_says_how_many_connections_it_takes() -> None:
    (unit,) = (text for text in blocks(INSTALL, "ini") if "granian" in text)
    words = [word for line in unit.splitlines() if line.startswith("Environment=") for word in line.partition("=")[2].split()]
    assert WEB_LIMITS.items() == dict(word.split("=") for word in words).items()
    assert "--backpressure" not in unit


def test_the_printed_unit_of_pilots_is_a_command_line_of_the_pilot() -> None:
    from brokerage.pilot.__main__ import arguments

    (unit,) = (text for text in blocks(INSTALL, "ini") if "brokerage.pilot" in text)
    (line,) = (line for line in unit.splitlines() if line.startswith("ExecStart="))
    options = arguments().parse_args(shlex.split(line.partition("brokerage.pilot ")[2]))
    assert options.slot == "DELTA-%i"
    assert "UMask=0027" in unit


def test_the_printed_key_is_not_for_others_to_read(tmp_path: Path) -> None:
    installed(tmp_path)
    assert stat.S_IMODE((tmp_path / "secret-key").stat().st_mode) & 0o007 == 0
