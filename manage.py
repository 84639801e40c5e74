#!/usr/bin/env python
"""Operator commands. Without DATABASE_URL they use the private servers of this folder, started for the command if need be."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

PURE = frozenset(
    {"check", "collectstatic", "config_reference", "conformance", "criteria", "decide", "diffsettings", "findstatic", "help"}
    | {"makemigrations", "spectacular", "states", "test", "version"}
)
"""Commands that need no server: they never start one."""

OWN_INSTANCE = {"demo": "demo", "up --demo": "tour"}
"""Commands with a private instance of their own, so that they run beside `up`."""

PREPARES = frozenset({"up", "demo", "migrate"})
"""Commands that make the tables themselves."""


def main(argv: Sequence[str] = sys.argv) -> int:
    """Run one command; its exit code. What is wrong with environment or servers is told in one line, without a trace."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broker_site.settings")
    if not os.environ.get("SECRET_KEY") and not os.environ.get("SECRET_KEY_FILE"):
        os.environ.setdefault("GRIDBROKER_PROFILE", "local")  # who gives a key runs a real installation
    from broker_site.env import BadEnvironment, Env

    command = next((part for part in argv[1:] if not part.startswith("-")), "help")
    with_option = "up --demo" if command == "up" and "--demo" in argv else command
    if with_option in OWN_INSTANCE and not os.environ.get("GRIDBROKER_INSTANCE"):
        os.environ["GRIDBROKER_INSTANCE"] = OWN_INSTANCE[with_option]
    try:
        env = Env.read(os.environ)
    except BadEnvironment as error:
        print(error, file=sys.stderr)
        return 2
    if command in PURE or not {"-h", "--help", "--version"}.isdisjoint(argv) or (env.database and env.redis_url):
        return execute(argv)
    return with_private_servers(command, env.instance, argv)


def with_private_servers(command: str, name: str, argv: Sequence[str]) -> int:
    """Run the command while the servers of this instance run; they stay if somebody else uses them."""
    from broker_site.roof.embedded import ROOT, NoPlace, NotStarted, attached, known_instances, quiet

    runs_system = command in ("up", "demo")
    known = known_instances(ROOT)
    if command not in PREPARES and name != "up" and name not in known:
        there = f"there are: {', '.join(known)}" if known else "there is none yet"
        print(f"GRIDBROKER_INSTANCE: there is no instance {name!r} below .gridbroker; {there}", file=sys.stderr)
        return 2
    say = print if runs_system else quiet
    try:
        with attached(name, say=say, need_redis=runs_system, follow=runs_system) as instance:
            os.environ.update(instance.services.environment())
            if instance.postgres and command not in PREPARES and instance.empty():
                execute([argv[0], "migrate", "--verbosity", "0"])
            return execute(argv)
    except (NoPlace, NotStarted) as error:
        print(error, file=sys.stderr)
        return 2


def execute(argv: Sequence[str]) -> int:
    """Let Django run the command; 0, since a command that fails leaves by SystemExit. Who reads may stop early (`| head`)."""
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(list(argv))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more when it ends
        return 141  # as a program ends that SIGPIPE ends
    return 0


if __name__ == "__main__":
    sys.exit(main())
