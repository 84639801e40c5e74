"""What a command has at hand: its options, the client, where it prints and whom it may ask."""

from __future__ import annotations

import argparse
import sys
import time
import webbrowser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TextIO

from broker_site.client import credentials
from broker_site.client.api import Client
from broker_site.client.command import terminal
from broker_site.client.command.printer import Printer
from broker_site.client.connection import PATIENCE_S, Connection
from broker_site.client.errors import OK, BrokerError, Refused, Unusable

PATIENCE = "GRIDBROKER_PATIENCE"


class Session:
    """One run of the command. `on_interrupt`: what Ctrl-C leaves behind, in a sentence."""

    def __init__(self, options: argparse.Namespace, environ: Mapping[str, str]) -> None:
        self.options, self.environ = options, environ
        self.stdin, self.stderr = sys.stdin, sys.stderr
        colours = sys.stdout.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
        self.printer = Printer(sys.stdout, _form(options, sys.stdout), getattr(options, "json", None) or (), colours)
        self.on_interrupt = ""
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """Of the server that environment or file name."""
        if self._client is None:
            found = credentials.find(self.environ)
            self._client = Client(connection=self.connect(found.url, found.token))
        return self._client

    def connect(self, url: str, token: str) -> Connection:
        connection = Connection(url, token, self._patience())
        connection.told = self.tell
        return connection

    def tell(self, sentence: str) -> None:
        """A line beside the output."""
        self.stderr.write(f"broker: {terminal.safe(sentence)}\n")
        self.stderr.flush()

    def page(self, path: str) -> bool:
        """With --url print the address of the page, with --web open it; whether that was all. Unusable without a browser."""
        url, web = (getattr(self.options, name, False) for name in ("url", "web"))
        if not (url or web):
            return False
        address = self.client.connection.address(path)
        if url:
            self.printer.line(address)
        if web and not webbrowser.open(address):
            raise Unusable("No browser opens here", address, "BROWSER names one; --url prints the address")
        return True

    def sure(self, verb: str, ids: Sequence[int], noun: str) -> bool:
        """Whether to do that to so many: of several it is asked, unless --yes. Raises Unusable where nobody can answer."""
        if len(ids) < 2 or self.options.yes:
            return True
        question = f"{verb} {len(ids)} {noun}s ({', '.join(map(str, ids[:5]))}{', ...' if len(ids) > 5 else ''})?"
        return self.agreed(question)

    def agreed(self, question: str) -> bool:
        """Whether somebody says yes, or said it. Raises Unusable where nobody can answer."""
        if self.options.yes:
            return True
        taken = "-" in getattr(self.options, "ids", ()) or getattr(self.options, "file", "") == "-"
        if not self.stdin.isatty() or taken:
            raise Unusable(question, "nobody can answer here", "--yes does it")
        self.stderr.write(f"{question} [y/N] ")
        self.stderr.flush()
        return self.stdin.readline().strip().lower() in ("y", "yes")

    def each(self, ids: Iterable[int], do: Callable[[int], object]) -> int:
        """Do it to each; one that is refused does not keep the others from it. The exit code of the first that was."""
        codes = [self._code(do, number) for number in ids]
        return next((code for code in codes if code), OK)

    def _code(self, do: Callable[[int], object], number: int) -> int:
        try:
            do(number)
        except Refused as refused:
            if refused.status == 401:  # no other one will go better
                raise
            refused.title = f"{number}: {refused.title}"
            self.complain(refused)
            return refused.exit_code
        return OK

    def complain(self, problem: BrokerError) -> None:
        """Title, detail, faults by field, hint, trace id."""
        for line in told(problem):
            self.stderr.write(f"{line}\n")
        self.stderr.flush()

    def now(self) -> float:
        return time.monotonic()

    def _patience(self) -> float:
        text = self.environ.get(PATIENCE) or str(PATIENCE_S)
        try:
            return float(text)
        except ValueError:
            raise Unusable(f"{PATIENCE} is no number", repr(text), "expected are seconds, like 90") from None


def told(problem: BrokerError) -> Iterator[str]:
    """The lines on standard error."""
    said = isinstance(problem, Refused) and any(fault.message in problem.detail for fault in problem.faults)
    detail = f": {terminal.safe(problem.detail)}" if problem.detail and not said else ""
    yield f"broker: {terminal.safe(problem.title)}{detail}"
    if isinstance(problem, Refused):
        for fault in problem.faults:
            message = fault.message.removeprefix(f"{fault.field}: ") if fault.field else fault.message
            yield f"  {terminal.safe(fault.field or 'body')} ({terminal.safe(fault.rule)}): {terminal.safe(message)}"
    if problem.hint:
        yield f"  hint: {terminal.safe(problem.hint)}"
    if isinstance(problem, Refused) and problem.trace_id:
        yield f"  trace id {terminal.safe(problem.trace_id)}"


def numbers(words: Sequence[str], stdin: TextIO) -> list[int]:
    """Ids as they were given, each once; `-` stands for those on standard input."""
    given = [each for word in words for each in (stdin.read().split() if word == "-" else [word])]
    if wrong := [each for each in given if not (each.isascii() and each.isdigit() and len(each) < 19)]:
        hint = "expected are ids, like 7 12, or - for those on standard input; broker ls task_name=NAME tells that of a task"
        raise Unusable("Not a number", repr(wrong[0][:100]), hint)
    return list(dict.fromkeys(map(int, given)))


def filters(words: Sequence[str], like: str = "status=running,pending") -> dict[str, str]:
    """NAME=VALUE words; the server says which names it knows. `like`: an example of one."""
    found: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise Unusable("Not NAME=VALUE", repr(word), f"expected is something like {like}")
        if name in found:  # the last one alone would count, and an act would take more than was meant
            raise Unusable("Said twice", repr(name), f"expected is each name once, like {like}")
        found[name] = value
    return found


def _form(options: argparse.Namespace, out: TextIO) -> str:
    if getattr(options, "json", None) is not None:
        return "json"
    for form in ("csv", "quiet"):
        if getattr(options, form, False):
            return form
    return "table" if out.isatty() else "tsv"
