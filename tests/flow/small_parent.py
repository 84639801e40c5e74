"""A parent broker of tests: a real HTTP server with the messages of the protocol, which gives what a test tells it to give, and
keeps what it was told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any
from uuid import uuid4

from broker_site.foundation.access.jsonbody import BODY_LIMIT, decode, read_stream
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.outside_data import OutsideDataError, read
from workqueues.rules.elements.messages import FetchWork, Pull, Report

TOKEN = "child-token"
KINDS = {"pull": Pull, "fetch": FetchWork, "report": Report}
Said = dict[str, Any]


@dataclass
class SmallParent:
    """What it gives and keeps. `loses`: so many answers to each verb are lost on the way; `dead`: elements whose
    work is answered with this status, 0: with nothing of it; `says`: verdicts by element; `steered`: tries that a pull is told
    to report."""

    url: str = ""
    instance: str = field(default_factory=lambda: str(uuid4()))
    incarnation: str = field(default_factory=lambda: str(uuid4()))
    protocol: int = 1
    above: list[str] = field(default_factory=list)
    clock_ahead: timedelta = timedelta()
    offers: list[Said] = field(default_factory=list)
    works: dict[int, Said] = field(default_factory=dict)
    says: dict[int, Said] = field(default_factory=dict)
    steered: list[Said] = field(default_factory=list)
    loses: dict[str, int] = field(default_factory=dict)
    dead: dict[int, int] = field(default_factory=dict)
    pulls: dict[str, list[Said]] = field(default_factory=dict)
    heard: list[tuple[str, Said]] = field(default_factory=list)
    before: Callable[[str], None] = lambda verb: None

    def offer(self, number: int, params: Said, inputs: list[Said], sites: list[str], **more: Any) -> None:
        """An element that the next pull gets."""
        head = {"id": number, "try_nr": 1, "task_id": 7, "task_name": params["taskName"], "vo": params["vo"], "priority": 500}
        n = sum(len(dataset["files"]) for dataset in inputs)
        self.offers.append({**head, "jobs": n, "n_files": n, "site": sites[0], "lease_s": 900.0, **more})
        work = {"id": number, "try_nr": 1, "owner": "ada", "parameters": params, "inputs": inputs, "sites": sites}
        self.works[number] = {**work, "serials": more.get("serials", 1000)}

    def told(self, number: int) -> list[Said]:
        """All that was reported of an element, in order."""
        reports = [message for verb, message in self.heard if verb == "report"]
        return [element for message in reports for element in message["elements"] if element["id"] == number]

    def ends(self, number: int) -> list[tuple[list[str], list[str]]]:
        """Ends that were told of an element: inputs with their end, and names of outputs."""
        every = [end for element in self.told(number) for end in element["ends"]]
        return [([f"{i['lfn']} {i['end']}" for i in end["inputs"]], [o["lfn"] for o in end["outputs"]]) for end in every]

    def asked(self, verb: str) -> list[Said]:
        """The messages of one kind."""
        return [message for kind, message in self.heard if kind == verb]

    def answer(self, verb: str, said: Said) -> tuple[int, Said]:
        try:
            read(KINDS[verb], said)
        except OutsideDataError as fault:
            return 422, {"detail": str(fault)}
        self.before(verb)
        self.heard.append((verb, said))
        bad = [self.dead[one["id"]] for one in said["elements"] if one["id"] in self.dead] if verb == "fetch" else []
        if any(bad):
            return max(bad), {"detail": "it broke"}
        now = datetime.now(UTC) + self.clock_ahead
        reply: Said = {"protocol": self.protocol, "version": "9", "instance": self.instance, "incarnation": self.incarnation}
        reply |= {"now": now.isoformat(), "lineage": [self.instance, *self.above]}
        return 200, reply | getattr(self, f"_{verb}")(said)

    def _pull(self, said: Said) -> Said:
        if said["key"] not in self.pulls:
            self.pulls[said["key"]] = [] if said["draining"] else self.offers[: said["most"]]
            self.offers = self.offers[len(self.pulls[said["key"]]) :]
        why = {} if self.pulls[said["key"]] else {"NoWork": 1}
        return {"elements": self.pulls[said["key"]], "why": why, "steered": self.steered}

    def _fetch(self, said: Said) -> Said:
        wanted = [element["id"] for element in said["elements"] if element["id"] not in self.dead]
        refused = {str(number): "it is not yours" for number in wanted if number not in self.works}
        return {"works": [self.works[number] for number in wanted if number in self.works], "refused": refused}

    def _report(self, said: Said) -> Said:
        verdicts = []
        for element in said["elements"]:
            over = element["state"] in ("Done", "Failed", "Canceled")
            held = {"verdict": "ended" if over else "held", "wish": "go", "priority": 500, "lease_s": 900.0}
            verdicts.append({"id": element["id"], "try_nr": element["try_nr"], **held, **self.says.get(element["id"], {})})
        return {"elements": verdicts}


@contextmanager
def serving(parent: SmallParent) -> Iterator[SmallParent]:
    """The parent, as long as it answers."""

    class Handler(BaseHTTPRequestHandler):
        wbufsize = -1

        def do_POST(self) -> None:
            verb = self.path.strip("/").rpartition("/")[2]
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                said = decode(read_stream(BytesIO(body), len(body), BODY_LIMIT))
                status, answer = parent.answer(verb, said)
            except Refused as refused:
                status, answer = refused.status, {"detail": refused.detail}
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                status, answer = 401, {"detail": "the token is unknown"}
            if parent.loses.get(verb, 0) > 0:
                parent.loses[verb] -= 1
                return  # the connection ends
            told = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    parent.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield parent
    finally:
        server.shutdown()
        server.server_close()


def input_dataset(name: str, n: int, storage: str = "ALPHA_DISK", first: int = 0, whole: bool = False) -> Said:
    """So many files of a dataset of the VO demo."""
    files = [
        {
            "lfn": f"{name}.{i:06d}",
            "size": 1000,
            "checksum": "00000001",
            "n_events": 10,
            "copies": [{"storage": storage, "path": f"{name}.{i:06d}"}],
        }
        for i in range(first, first + n)
    ]
    return {"name": name, "vo": "demo", "whole": whole, "files": files}
