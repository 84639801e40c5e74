"""What the process reads from its environment: one frozen, typed `Env`, which refuses bad values and names variable and rule.

Here: names, types, defaults and rules of every variable. Not here: Django settings made from them (`settings.py`) and the private
servers that set some of them for their children (`embedded`, `supervisor`).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

Profile = Literal["local", "production"]
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
T = TypeVar("T")

SHORTEST_KEY = 50
INSTANCE_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
HOST_NAME = re.compile(r"\.?[A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:]+\]")
PROXY_HEADER = re.compile(r"([A-Za-z][A-Za-z0-9-]*): *([A-Za-z0-9]+)")


class BadEnvironment(ValueError):
    """One or more variables break a rule; the message has a line for each: variable, rule, and what was found."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("the environment is not usable:\n" + "\n".join(f"  {problem}" for problem in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Database:
    """Where PostgreSQL is; an absolute `host` is the folder of a Unix socket."""

    name: str
    user: str
    password: str
    host: str
    port: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Env:
    """The environment of one process. Lists are separated by commas; an empty variable counts as not set."""

    profile: Profile
    """GRIDBROKER_PROFILE: `production` (default: refuses whatever is unsafe) or `local` (loopback, private servers)."""
    instance: str
    """GRIDBROKER_INSTANCE: which private instance under `.gridbroker/` operator commands mean; default `up`."""
    database: Database | None
    """DATABASE_URL: postgresql://user:password@host:port/name, or ...@/name?host=/folder/of/socket."""
    redis_url: str | None
    """REDIS_URL: redis://:password@host:port/number or rediss://..."""
    secret_key: str
    """SECRET_KEY, or the content of the file named by SECRET_KEY_FILE: signs sessions and job tokens."""
    secret_key_fallbacks: tuple[str, ...]
    """SECRET_KEY_FALLBACKS: older keys that still verify, while keys are rotated."""
    allowed_hosts: tuple[str, ...]
    """ALLOWED_HOSTS: names under which the site is reached."""
    csrf_trusted_origins: tuple[str, ...]
    """CSRF_TRUSTED_ORIGINS: https://name of sites whose forms may post here."""
    proxy_header: tuple[str, str] | None
    """TLS_PROXY_HEADER, as `X-Forwarded-Proto: https`: what the TLS terminator in front adds to secure requests."""
    port: int | None
    """GRIDBROKER_PORT: the web port of `up` and `demo`; a free one is taken when it is not set."""
    debug: bool
    """GRIDBROKER_DEBUG: Django's error pages; refused in production."""
    log_level: LogLevel
    """GRIDBROKER_LOG_LEVEL."""
    statement_timeout_ms: int
    """GRIDBROKER_STATEMENT_TIMEOUT_MS: the longest statement this process may run; 0 = no limit (migrations)."""
    lock_timeout_ms: int
    """GRIDBROKER_LOCK_TIMEOUT_MS: the longest wait for a lock; 0 = no limit."""

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Env:
        """The environment as typed values; BadEnvironment lists every variable that breaks a rule."""
        reader = _Reader(environ)
        profile: Profile = reader.take("GRIDBROKER_PROFILE", _profile, "production")
        env = cls(
            profile=profile,
            instance=reader.take("GRIDBROKER_INSTANCE", _instance, "up"),
            database=reader.take("DATABASE_URL", _database, None),
            redis_url=reader.take("REDIS_URL", _redis_url, None),
            secret_key=_secret_key(reader, profile),
            secret_key_fallbacks=reader.take("SECRET_KEY_FALLBACKS", _items, ()),
            allowed_hosts=reader.take("ALLOWED_HOSTS", _hosts, _local_hosts(profile)),
            csrf_trusted_origins=reader.take("CSRF_TRUSTED_ORIGINS", _origins, ()),
            proxy_header=reader.take("TLS_PROXY_HEADER", _proxy_header, None),
            port=reader.take("GRIDBROKER_PORT", _port, None),
            debug=reader.take("GRIDBROKER_DEBUG", _flag, False),
            log_level=reader.take("GRIDBROKER_LOG_LEVEL", _log_level, "INFO"),
            statement_timeout_ms=reader.take("GRIDBROKER_STATEMENT_TIMEOUT_MS", _milliseconds, 0),
            lock_timeout_ms=reader.take("GRIDBROKER_LOCK_TIMEOUT_MS", _milliseconds, 0),
        )
        stated = not any(line.startswith("GRIDBROKER_PROFILE:") for line in reader.problems)
        problems = reader.problems + (_unsafe(env) if profile == "production" and stated else [])
        if problems:
            raise BadEnvironment(problems)
        return env


class _Reader:
    """Takes variables one by one and keeps what is wrong with them, so that all problems are told at once."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.problems: list[str] = []

    def take(self, name: str, parse: Callable[[str], T], default: T) -> T:
        text = self._environ.get(name, "").strip()
        if not text:
            return default
        try:
            return parse(text)
        except ValueError as error:
            self.problems.append(f"{name}: {error}")
            return default


def _unsafe(env: Env) -> list[str]:
    """What production refuses, one line for each variable."""
    rules = (
        (env.database is None, "DATABASE_URL: must be set in production"),
        (env.redis_url is None, "REDIS_URL: must be set in production"),
        (
            len(env.secret_key) < SHORTEST_KEY or len(set(env.secret_key)) < 5,
            f"SECRET_KEY (or SECRET_KEY_FILE): must be set in production, at least {SHORTEST_KEY} characters, 5 different",
        ),
        (not env.allowed_hosts, "ALLOWED_HOSTS: must name the hosts of the site in production"),
        (env.proxy_header is None, "TLS_PROXY_HEADER: must say which header the TLS proxy sets, as 'X-Forwarded-Proto: https'"),
        (env.debug, "GRIDBROKER_DEBUG: must not be on in production"),
    )
    return [line for broken, line in rules if broken]


def _local_hosts(profile: Profile) -> tuple[str, ...]:
    return ("127.0.0.1", "localhost", "[::1]") if profile == "local" else ()


def _secret_key(reader: _Reader, profile: Profile) -> str:
    """The key itself, the content of its file, or (local only) a new one that lives as long as the process."""
    key = reader.take("SECRET_KEY", str, "") or reader.take("SECRET_KEY_FILE", _content, "")
    return key or (secrets.token_urlsafe(SHORTEST_KEY) if profile == "local" else "")


def _profile(text: str) -> Profile:
    if text == "local":
        return "local"
    if text == "production":
        return "production"
    raise ValueError(f"must be local or production, not {text!r}")


def _instance(text: str) -> str:
    if not INSTANCE_NAME.fullmatch(text):
        raise ValueError(f"must be small letters, digits and '-', beginning with a letter, at most 32, not {text!r}")
    return text


def _database(text: str) -> Database:
    """Errors never repeat the value, since it holds a password."""
    url = urlsplit(text)
    if url.scheme not in ("postgresql", "postgres"):
        raise ValueError(f"must begin with postgresql://, not {url.scheme or 'no scheme'!r}")
    if not (name := unquote(url.path.lstrip("/"))):
        raise ValueError("must end with the name of a database, as postgresql://user:password@host:5432/name")
    try:
        port = url.port
    except ValueError:
        raise ValueError("the port must be a number from 1 to 65535") from None
    options = dict(parse_qsl(url.query))
    return Database(
        name=name,
        user=unquote(url.username or ""),
        password=unquote(url.password or ""),
        host=options.pop("host", "") or url.hostname or "",
        port=options.pop("port", "") or str(port or ""),
        options=options,
    )


def _redis_url(text: str) -> str:
    url = urlsplit(text)
    if url.scheme not in ("redis", "rediss") or not url.hostname:
        raise ValueError("must look like redis://:password@host:6379/0 (or rediss:// for TLS)")
    return text


def _content(text: str) -> str:
    try:
        return Path(text).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None


def _items(text: str) -> tuple[str, ...]:
    return tuple(item for item in (part.strip() for part in text.split(",")) if item)


def _hosts(text: str) -> tuple[str, ...]:
    hosts = _items(text)
    if bad := [host for host in hosts if not HOST_NAME.fullmatch(host)]:
        raise ValueError(f"must be host names separated by commas; {bad[0]!r} is none ('*' would accept any)")
    return hosts


def _origins(text: str) -> tuple[str, ...]:
    origins = _items(text)
    if bad := [origin for origin in origins if urlsplit(origin).scheme not in ("http", "https")]:
        raise ValueError(f"must be origins as https://name separated by commas, not {bad[0]!r}")
    return origins


def _proxy_header(text: str) -> tuple[str, str]:
    """The header as Django wants it: its WSGI name and the value that means a secure request."""
    if not (match := PROXY_HEADER.fullmatch(text)):
        raise ValueError(f"must be 'Header-Name: value', as 'X-Forwarded-Proto: https', not {text!r}")
    return "HTTP_" + match[1].upper().replace("-", "_"), match[2]


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise ValueError(f"must be a number from 1 to 65535, not {text!r}")
    return int(text)


def _milliseconds(text: str) -> int:
    if not text.isdecimal() or int(text) > 3_600_000:
        raise ValueError(f"must be a whole number of milliseconds from 0 (no limit) to 3600000, not {text!r}")
    return int(text)


def _flag(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError(f"must be 1 or 0, not {text!r}")


def _log_level(text: str) -> LogLevel:
    levels: tuple[LogLevel, ...] = ("DEBUG", "INFO", "WARNING", "ERROR")
    for level in levels:
        if text.upper() == level:
            return level
    raise ValueError(f"must be one of {', '.join(levels)}, not {text!r}")
