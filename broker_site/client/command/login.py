"""`login`: which server, and with which token."""

from __future__ import annotations

import getpass
from collections.abc import Sequence

from broker_site.client import credentials
from broker_site.client.command.grammar import JSON, Verb, option
from broker_site.client.command.session import Session
from broker_site.client.connection import checked_url
from broker_site.client.errors import OK, Unusable

SHOWN = 12
"""Characters of a token that may be shown: by these an operator knows and revokes it."""


def login(session: Session) -> int:
    """Keep address and token once the server has taken the token; or tell what is kept."""
    options = session.options
    if options.check == options.token:
        raise Unusable("Say --token or --check", "", "--token keeps a token, --check tells with which one calls are made")
    if options.check:
        return _check(session)
    url = checked_url(options.server or credentials.find(session.environ).url)
    token = getpass.getpass(f"Token for {url}: ") if session.stdin.isatty() else session.stdin.readline()
    if not token.strip():
        raise Unusable("No token", "nothing was typed or piped in", "manage.py token create makes one; make up prints one")
    session.connect(url, token.strip()).get("tasks/", {"page_size": 1})
    path = credentials.keep(session.environ, url, token.strip())
    session.tell(f"{url} takes the token; kept in {path}")
    for name in (credentials.URL, credentials.TOKEN):
        if session.environ.get(name):
            session.tell(f"{name} is set and goes before it")
    return OK


def _check(session: Session) -> int:
    found = credentials.find(session.environ)
    session.client.connection.get("tasks/", {"page_size": 1})
    session.printer.line(f"server\t{found.url}\tfrom {found.url_from}")
    session.printer.line(f"token\t{found.token[:SHOWN]}...\tfrom {found.token_from}, and the server takes it")
    return OK


def whoami(session: Session) -> int:
    """Who the server takes the caller for, with the roles in each VO; as JSON the permissions too."""
    me = session.client.connection.get("me/")
    lines = [f"{me['name']}{' (superuser)' if me['superuser'] else ''}"]
    session.printer.document(me, [*lines, *(f"{vo}: {', '.join(roles)}" for vo, roles in me["roles"].items())], key="name")
    return OK


VERBS: Sequence[Verb] = (
    Verb(
        ("login",),
        "keep the address of a server and a token for it",
        login,
        (
            option("server", nargs="?", metavar="URL", help="address of the pages; else the one that is known already"),
            option("--token", action="store_true", help="read the token from the terminal unseen, or from standard input"),
            option("--check", action="store_true", help="tell server and token, where they come from, and whether they are good"),
        ),
    ),
    Verb(("whoami",), "who the server takes you for, and your roles", whoami, (JSON,)),
)
