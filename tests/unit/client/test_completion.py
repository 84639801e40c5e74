"""The scripts for shells: bash's is run, every script holds every word of the command."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from broker_site.client.command.completion import CAP_S
from broker_site.client.command.filter_words import FILTERS
from broker_site.client.command.main import VERBS


def script(shell: str) -> str:
    command = [sys.executable, "-m", "broker_site.client", "completion", shell]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_word_and_option_is_in_the_script(shell: str) -> None:
    text = script(shell)
    missing = [word for verb in VERBS for word in verb.words if word not in text]
    missing += [
        name for verb in VERBS for each in verb.options for name in each.names if name.startswith("--") and name not in text
    ]
    assert not missing
    program = shutil.which(shell)
    if program is not None:
        assert subprocess.run([program, "-n"], input=text, capture_output=True, text=True).stderr == ""


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["broker", "ta"], {"task"}),
        (["broker", "task", "w"], {"watch", "why"}),
        (["broker", "why", "7", "--q"], {"--queue"}),
        (["broker", "queue", "show", "ALPHA", "--j"], {"--json"}),
        (["broker", "ls", "--status", "fin"], {"finished", "finishing"}),
        (["broker", "task", "ls", "-s", "pen"], {"pending"}),
        (["broker", "job", "ls", "computi"], set()),
        (["broker", "task", "ls", "user_n"], {"user_name="}),
        (["broker", "job", "ls", "status", "=", "act"], {"activated"}),
        (["broker", "queue", "ls", "status", "="], set(FILTERS["queue"]["status"])),
        (["broker", "task", "set", "--where", "user_n"], {"user_name="}),
        (["broker", "task", "set", "--where", "status", "=", "pen"], {"pending"}),
        (["broker", "completion", ""], {"bash", "zsh", "fish", "-h", "--help"}),
    ],
)
def test_bash_completes_what_may_come_next(words: list[str], found: set[str]) -> None:
    typed = " ".join(f"'{word}'" for word in words)
    ask = f"COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _broker; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", f"{script('bash')}\n{ask}"], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == found
    assert done.stderr == ""


def test_bash_completes_with_what_the_server_has_and_expands_nothing_of_it(tmp_path: Path) -> None:
    """A stand-in for the command tells what was asked, beside names that a shell would act on."""
    stand_in = tmp_path / "broker"
    stand_in.write_text(
        '#!/bin/sh\nprintf "%s\\n" ALPHA \'$(touch hit)\' \'`touch hit`\' BETA-1 "a b" "$(echo "$*" | tr " " _)"\n'
    )
    stand_in.chmod(0o755)
    for words, asked in ((("queue", "show"), "queue_ls_-q_-n_0"), (("why",), "task_ls_-q_-n_30"), (("logs",), "job_ls_-q_-n_30")):
        typed = " ".join(("broker", *words, "''"))
        ask = f"COMP_WORDS=({typed}); COMP_CWORD={len(words) + 1}; _broker; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        text = script("bash").replace(f"timeout {CAP_S}", "timeout 20")  # the machine may be busy
        run = ["bash", "-c", f"{text}\n{ask}"]
        done = subprocess.run(run, capture_output=True, text=True, check=True, cwd=tmp_path, env=environ)
        found = set(done.stdout.split())
        assert {"ALPHA", "BETA-1", asked, "--url"} <= found
        assert not [word for word in found if "touch" in word]
        assert not (tmp_path / "hit").exists()
