"""What the process reads from its environment: one frozen, typed `Env`, which refuses bad values and names variable and rule.

Here: names, types, defaults and rules of every variable. Not here: Django settings made from them (`settings.py`) and the private
servers that set some of them for their children (`embedded`, `supervisor`).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import BeforeValidator, Field

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import OutsideDataError, read

Profile = Literal["local", "production"]
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]

SHORTEST_KEY = 50
INSTANCE_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
HOST_NAME = re.compile(r"\.?[A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:]+\]")
LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")
PARENT = frozenset({"GRIDBROKER_PARENT", "GRIDBROKER_PARENT_TOKEN", "GRIDBROKER_PARENT_TOKEN_FILE"})
PROXY_HEADER = re.compile(r"([A-Za-z][A-Za-z0-9-]*): *([A-Za-z0-9]+)")


class BadEnvironment(OutsideDataError):
    """One or more variables break a rule; the message has a line for each: variable, rule, and what was found."""

    def __str__(self) -> str:
        return "\n".join(["the environment is not usable:", *(f"  {p.field}: {p.message}" for p in self.problems)])


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

    profile: Annotated[Profile, Field(validation_alias="GRIDBROKER_PROFILE"), BeforeValidator(_profile)] = "production"
    """GRIDBROKER_PROFILE: `production` (default: refuses whatever is unsafe) or `local` (loopback, private servers)."""
    instance: Annotated[str, Field(validation_alias="GRIDBROKER_INSTANCE"), BeforeValidator(_instance)] = "up"
    """GRIDBROKER_INSTANCE: which private instance under `.gridbroker/` operator commands mean; default `up`."""
    database: Annotated[Database | None, Field(validation_alias="DATABASE_URL"), BeforeValidator(_database)] = None
    """DATABASE_URL: postgresql://user:password@host:port/name, or ...@/name?host=/folder/of/socket."""
    monitoring_database: Annotated[
        Database | None, Field(validation_alias="MONITORING_DATABASE_URL"), BeforeValidator(_database)
    ] = None
    """MONITORING_DATABASE_URL: the same database as DATABASE_URL, as the role that pages read as."""
    redis_url: Annotated[str | None, Field(validation_alias="REDIS_URL"), BeforeValidator(_redis_url)] = None
    """REDIS_URL: redis://:password@host:port/number or rediss://..."""
    secret_key: Annotated[str, Field(validation_alias="SECRET_KEY")] = ""
    """SECRET_KEY, or the content of the file named by SECRET_KEY_FILE: signs sessions and job tokens."""
    secret_key_fallbacks: Annotated[tuple[str, ...], Field(validation_alias="SECRET_KEY_FALLBACKS"), BeforeValidator(_items)] = ()
    """SECRET_KEY_FALLBACKS: older keys that still verify, while keys are rotated."""
    allowed_hosts: Annotated[tuple[str, ...], Field(validation_alias="ALLOWED_HOSTS"), BeforeValidator(_hosts)] = ()
    """ALLOWED_HOSTS: names under which the site is reached."""
    csrf_trusted_origins: Annotated[
        tuple[str, ...], Field(validation_alias="CSRF_TRUSTED_ORIGINS"), BeforeValidator(_origins)
    ] = ()
    """CSRF_TRUSTED_ORIGINS: https://name of sites whose forms may post here."""
    proxy_header: Annotated[
        tuple[str, str] | None, Field(validation_alias="TLS_PROXY_HEADER"), BeforeValidator(_proxy_header)
    ] = None
    """TLS_PROXY_HEADER, as `X-Forwarded-Proto: https`: what the TLS terminator in front adds to secure requests."""
    port: Annotated[int | None, Field(validation_alias="GRIDBROKER_PORT"), BeforeValidator(_port)] = None
    """GRIDBROKER_PORT: the web port of `up` and `demo`; a free one is taken when it is not set."""
    debug: Annotated[bool, Field(validation_alias="GRIDBROKER_DEBUG"), BeforeValidator(_flag)] = False
    """GRIDBROKER_DEBUG: Django's error pages; refused in production."""
    log_level: Annotated[LogLevel, Field(validation_alias="GRIDBROKER_LOG_LEVEL"), BeforeValidator(_log_level)] = "INFO"
    """GRIDBROKER_LOG_LEVEL."""
    two_person: Annotated[bool | None, Field(validation_alias="TWO_PERSON"), BeforeValidator(_flag)] = None
    """TWO_PERSON: whether some configuration keys take a second person who approves; in production they do by default."""
    banner: Annotated[str, Field(validation_alias="GRIDBROKER_BANNER", max_length=200)] = ""
    """GRIDBROKER_BANNER: a line on every page, as "test system"."""
    statement_timeout_ms: Annotated[
        int, Field(validation_alias="GRIDBROKER_STATEMENT_TIMEOUT_MS"), BeforeValidator(_milliseconds)
    ] = 0
    """GRIDBROKER_STATEMENT_TIMEOUT_MS: the longest statement this process may run; 0 = no limit (migrations)."""
    lock_timeout_ms: Annotated[int, Field(validation_alias="GRIDBROKER_LOCK_TIMEOUT_MS"), BeforeValidator(_milliseconds)] = 0
    """GRIDBROKER_LOCK_TIMEOUT_MS: the longest wait for a lock; 0 = no limit."""
    body_timeout_ms: Annotated[int, Field(validation_alias="GRIDBROKER_BODY_TIMEOUT_MS"), BeforeValidator(_body_time)] = 30_000
    """GRIDBROKER_BODY_TIMEOUT_MS: within this time a request's body must be there whole (web)."""
    unread_timeout_ms: Annotated[int, Field(validation_alias="GRIDBROKER_UNREAD_TIMEOUT_MS"), BeforeValidator(_body_time)] = (
        600_000
    )
    """GRIDBROKER_UNREAD_TIMEOUT_MS: a client that reads nothing of a long answer for so long is cut off (web)."""
    people_threads: Annotated[int, Field(validation_alias="GRIDBROKER_PEOPLE_THREADS"), BeforeValidator(_threads)] = 4
    """GRIDBROKER_PEOPLE_THREADS: threads of a web process for pages, admin and the users' REST."""
    pilot_threads: Annotated[int, Field(validation_alias="GRIDBROKER_PILOT_THREADS"), BeforeValidator(_threads)] = 8
    """GRIDBROKER_PILOT_THREADS: threads of a web process for heartbeats, and as many for pilots that ask."""
    web_connections: Annotated[int, Field(validation_alias="GRANIAN_BACKPRESSURE"), BeforeValidator(_connections)] = 512
    """GRANIAN_BACKPRESSURE: connections that a web process takes at a time, as Granian reads it (its default for two)."""
    worker_memory_mb: Annotated[int, Field(validation_alias="GRIDBROKER_WORKER_MEMORY_MB"), BeforeValidator(_megabytes)] = 1500
    """GRIDBROKER_WORKER_MEMORY_MB: so much memory a process of the worker may take beyond that of its start."""
    installation_file: Annotated[str, Field(validation_alias="GRIDBROKER_INSTALLATION_FILE", max_length=1000)] = ""
    """GRIDBROKER_INSTALLATION_FILE: where a broker keeps who it is beside its database, to know when that was restored."""
    parent: Annotated[str, Field(validation_alias="GRIDBROKER_PARENT", max_length=255), BeforeValidator(_parent)] = ""
    """GRIDBROKER_PARENT: https address of the broker from which this one pulls work; plain http on loopback alone."""
    parent_token: Annotated[str, Field(validation_alias="GRIDBROKER_PARENT_TOKEN", max_length=500)] = ""
    """GRIDBROKER_PARENT_TOKEN, or the content of the file named by GRIDBROKER_PARENT_TOKEN_FILE: our token there."""
    local_pilots: Annotated[Path | None, Field(validation_alias="GRIDBROKER_LOCAL_PILOTS"), BeforeValidator(_absolute)] = None
    """GRIDBROKER_LOCAL_PILOTS: the file that says how the worker starts pilots of jobs that are submitted to this machine."""
    secret_key_file: InitVar[Annotated[str, Field(validation_alias="SECRET_KEY_FILE"), BeforeValidator(_content)]] = ""
    parent_token_file: InitVar[
        Annotated[str, Field(validation_alias="GRIDBROKER_PARENT_TOKEN_FILE"), BeforeValidator(_content)]
    ] = ""

    def __post_init__(self, secret_key_file: str, parent_token_file: str) -> None:
        """The key may lie in a file; a local one may be new and live as long as the process."""
        local = self.profile == "local"
        key = self.secret_key or secret_key_file or (secrets.token_urlsafe(SHORTEST_KEY) if local else "")
        object.__setattr__(self, "secret_key", key)
        object.__setattr__(self, "parent_token", self.parent_token or parent_token_file)
        object.__setattr__(self, "two_person", not local if self.two_person is None else self.two_person)
        object.__setattr__(self, "allowed_hosts", self.allowed_hosts or (LOCAL_HOSTS if local else ()))

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Env:
        """The environment as typed values; BadEnvironment lists every variable that breaks a rule."""
        values = {name: text.strip() for name, text in environ.items() if text.strip()}
        for secret in ("SECRET_KEY", "GRIDBROKER_PARENT_TOKEN"):
            if secret in values:
                values.pop(f"{secret}_FILE", None)
        problems: list[Problem] = []
        try:
            env = read(cls, values)
        except OutsideDataError as error:
            problems += error.problems
            env = read(cls, {name: text for name, text in values.items() if name not in {p.field for p in problems}})
        wrong = {p.field for p in problems}
        if env.profile == "production" and "GRIDBROKER_PROFILE" not in wrong:
            problems += [p for p in _unsafe(env) if p.field not in wrong]
        if not wrong & PARENT:
            problems += _tokenless(env)
        if problems:
            raise BadEnvironment(problems)
        return env


def _unsafe(env: Env) -> list[Problem]:
    """What production refuses, one for each variable."""
    weak = len(env.secret_key) < SHORTEST_KEY or len(set(env.secret_key)) < 5
    key = f"must be set in production (or SECRET_KEY_FILE), at least {SHORTEST_KEY} characters, 5 different"
    rules = (
        (env.database is None, "DATABASE_URL", "must be set in production"),
        (env.redis_url is None, "REDIS_URL", "must be set in production"),
        (weak, "SECRET_KEY", key),
        (not env.allowed_hosts, "ALLOWED_HOSTS", "must name the hosts of the site in production"),
        (env.proxy_header is None, "TLS_PROXY_HEADER", "must say which header the TLS proxy sets, as 'X-Forwarded-Proto: https'"),
        (env.debug, "GRIDBROKER_DEBUG", "must not be on in production"),
    )
    return [Problem(name, "unsafe", message) for broken, name, message in rules if broken]


def _tokenless(env: Env) -> list[Problem]:
    """A parent asks for a token, whatever the profile; one that can be no header is none."""
    if not env.parent:
        return []
    name, good = "GRIDBROKER_PARENT_TOKEN", env.parent_token.isascii() and env.parent_token.isprintable()
    if not env.parent_token:
        return [Problem(name, "required", f"must be set with GRIDBROKER_PARENT (or {name}_FILE): the token that the parent gave")]
    return [] if good and " " not in env.parent_token else [Problem(name, "format", "must be a token: ASCII without blanks")]


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


def _parent(text: str) -> str:
    """Errors never repeat the value, since somebody may have written a password into it."""
    url = urlsplit(text)
    try:
        known = url.scheme in ("http", "https") and bool(url.hostname) and (url.port or 1) > 0
    except ValueError:
        known = False
    if not known or url.query or url.fragment:
        raise ValueError("must be the address of the parent broker, as https://broker.example.org")
    if url.username is not None or url.password is not None:
        raise ValueError("must have no user or password; the token is in GRIDBROKER_PARENT_TOKEN or a file")
    if url.scheme == "http" and url.hostname not in [host.strip("[]") for host in LOCAL_HOSTS]:
        raise ValueError("must begin with https://; plain http goes to 127.0.0.1, localhost and [::1] alone")
    return f"{url.scheme}://{url.netloc}{url.path.rstrip('/')}"


def _absolute(text: str) -> Path:
    if not (path := Path(text)).is_absolute():
        raise ValueError(f"must be an absolute path, not {text[:100]!r}")
    return path


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


def _body_time(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 600_000:
        raise ValueError(f"must be a whole number of milliseconds from 1 to 600000, not {text!r}")
    return int(text)


def _threads(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise ValueError(f"must be a number of threads from 1 to 64, not {text!r}")
    return int(text)


def _connections(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100_000:
        raise ValueError(f"must be a number of connections from 1 to 100000, not {text!r}")
    return int(text)


def _megabytes(text: str) -> int:
    if not text.isdecimal() or not 300 <= int(text) <= 1_000_000:
        raise ValueError(f"must be a whole number of MB from 300 to 1000000, not {text!r}")
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
