"""Where address and token are kept: a file that only its owner can read, over which the environment goes.

`$XDG_CONFIG_HOME/gridbroker/client.json` (`~/.config/...`), mode 0600; GRIDBROKER_URL and GRIDBROKER_TOKEN go before it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from broker_site.client.connection import checked_url
from broker_site.client.errors import Unusable

URL, TOKEN = "GRIDBROKER_URL", "GRIDBROKER_TOKEN"


@dataclass(frozen=True)
class Credentials:
    """A server and the token for it, and where each was found."""

    url: str
    token: str
    url_from: str
    token_from: str


def file_of(environ: Mapping[str, str]) -> Path:
    """Where the file is, whether or not it is there."""
    base = environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".config") / "gridbroker" / "client.json"


def find(environ: Mapping[str, str]) -> Credentials:
    """What the environment says, else the file. Raises Unusable where neither does, or the file is not fit to be used.

    The token of the file goes to the server of the file: with another one in the environment it has to come from there too.
    """
    path = file_of(environ)
    kept = {} if environ.get(URL) and environ.get(TOKEN) else _kept(path)
    url = environ.get(URL) or kept.get("url", "")
    if not url:
        raise Unusable("No server", f"neither {URL} nor {path} names one", "broker login https://broker.example.org --token")
    token = environ.get(TOKEN) or ""
    if not token and kept.get("token"):
        if checked_url(url) != checked_url(kept.get("url", "")):
            raise Unusable(
                f"No token for {url}",
                f"the one in {path} is for {kept.get('url')}",
                f"set {TOKEN}, or broker login {url} --token",
            )
        token = kept["token"]
    return Credentials(
        url, token, URL if environ.get(URL) else str(path), TOKEN if environ.get(TOKEN) else str(path) if token else "nowhere"
    )


def keep(environ: Mapping[str, str], url: str, token: str) -> Path:
    """Write the file, whole or not at all, readable to its owner from its first byte on; the path."""
    path = file_of(environ)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f".client.{uuid4().hex}")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"url": url, "token": token}, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        new.unlink()
        raise
    return path


def _kept(path: Path) -> Mapping[str, str]:
    try:
        with path.open(encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077:
                raise Unusable(
                    f"{path} can be read by others", f"its mode is {mode:04o}, and it holds a token", f"chmod 600 {path}"
                )
            document: Any = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise Unusable(f"{path} cannot be read", str(problem), "remove it and sign in anew: broker login URL --token") from None
    if not isinstance(document, dict):
        raise Unusable(f"{path} holds no address and token", "", "remove it and sign in anew: broker login URL --token")
    return {name: value for name, value in document.items() if isinstance(value, str)}
