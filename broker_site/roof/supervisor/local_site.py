"""What a local system needs in its database before it can be used: people, a grid, and secrets for local pilots.

Each function makes what is missing and keeps what is there, so that `up` can be repeated. Secrets lie in files that only the user
who runs it can read, below the instance's folder.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote

from django.core.management import call_command

from broker_site.foundation.access.credentials import ensure_user, issue_user_token
from broker_site.foundation.access.models import User
from broker_site.foundation.access.roles import ROLES
from broker_site.roof.embedded.instance import ROOT, Say, quiet
from broker_site.roof.embedded.place import CLOSED, make_passed, read_private, write_private
from broker_site.roof.embedded.users import own_user
from broker_site.roof.supervisor.system import Pilot, System
from brokerage.feeds.storage_roots import put_mark
from brokerage.ledger.storages import note_mark
from brokerage.models import ComputingQueue, StorageEndpoint
from brokerage.pilot.storage_root import MARKER
from brokerage.submitters.local_slots import enrolment_file, is_valid

VO = "demo"
ADMIN, MEMBER = "admin", "demo"
GRID = ROOT / "examples" / "grids" / "demo.json"
SOFTWARE = ROOT / "examples" / "demo" / "software"


@dataclass(frozen=True, slots=True)
class People:
    """The two accounts of a local system. `admin` may everything but submit; `token` belongs to the member, who may submit."""

    admin: str
    password: str
    member: str
    member_password: str
    token: str


def people(folder: Path) -> People:
    """The accounts, made on the first run; passwords and token stay the same as long as the instance's folder is kept."""
    file = folder / "people.json"
    kept = {name: str(value) for name, value in read_private(file).items()}
    for name in ("password", "member_password"):
        kept.setdefault(name, secrets.token_urlsafe(12))
    if not User.objects.filter(username=ADMIN).exists():
        ensure_user(ADMIN, password=kept["password"], superuser=True)
    if not User.objects.filter(username=MEMBER).exists():
        ensure_user(MEMBER, password=kept["member_password"], roles=[(VO, role) for role in ROLES])
    if not is_valid(kept.get("token", "")):
        kept["token"] = issue_user_token(User.objects.get(username=MEMBER), vo=VO, note="made by manage.py up").text
    write_private(file, json.dumps(kept))
    return People(ADMIN, kept["password"], MEMBER, kept["member_password"], kept["token"])


def load_grid(file: Path = GRID) -> bool:
    """Load the grid document when there is no queue yet; whether it was loaded."""
    if ComputingQueue.objects.exists():
        return False
    call_command("import_grid", str(file), verbosity=0)
    return True


@dataclass(frozen=True, slots=True)
class PayloadRights:
    """How payloads are kept from what is the broker's. `note`: a line for the user when they are not."""

    own_users: bool
    hidden: tuple[Path, ...]
    note: str = ""


@cache
def payload_rights(folder: Path) -> PayloadRights:
    """What this system allows; tried, not guessed."""
    root = os.geteuid() == 0
    first = [str(own_user(folder, "trial").uid), str(SOFTWARE)] if root else [str(folder)]
    command = [sys.executable, "-m", "brokerage.pilot.confinement", *first]
    tried = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    if tried.returncode == 0:
        return PayloadRights(own_users=root, hidden=() if root else (folder.parent,))
    why = (tried.stderr.strip().splitlines() or ["not reachable"])[-1]
    note = (
        f"payloads run with {'the rights of root' if root else 'your rights'}: this system gives them none of their own ({why})"
    )
    return PayloadRights(own_users=False, hidden=(), note=note)


def mark_storages(folder: Path) -> list[str]:
    """Make and mark the roots below the instance's folder that nobody has made yet; names of endpoints that stay unmarked.

    A root that was marked once is never made again: it has gone away.
    """
    for endpoint in StorageEndpoint.objects.filter(mark="").exclude(path="").order_by("name"):
        path = Path(endpoint.path)
        if path.is_relative_to(folder) and (not path.exists() or (path / MARKER).exists()):
            for each in reversed([path, *(parent for parent in path.parents if parent.is_relative_to(folder))]):
                each.mkdir(CLOSED, exist_ok=True)
            note_mark(endpoint.name, put_mark(endpoint.name, path))
    return list(StorageEndpoint.objects.filter(mark="").exclude(path="").order_by("name").values_list("name", flat=True))


def local_pilots(folder: Path, per_queue: int | None = None, say: Say = quiet) -> Iterator[Pilot]:
    """Pilots for every queue that has local ones: `per_queue` of them, or as many as the grid says.

    `say` is told when their payloads cannot be kept from what is the broker's.
    """
    if per_queue == 0:
        return
    rights = payload_rights(folder)
    if rights.note:
        say(rights.note)
    for queue in ComputingQueue.objects.filter(local_pilots__gt=0).order_by("name"):
        secret = enrolment_file(folder / "enrolments", queue.name, queue.site_id)
        for number in range(1, (queue.local_pilots if per_queue is None else per_queue) + 1):
            slot = f"{_path_part(queue)}-{number}"
            yield Pilot(
                queue=queue.name,
                slot=slot,
                enrolment_file=secret,
                work=folder / "work" / _path_part(queue) / str(number),
                software=SOFTWARE,
                options=_slot_size(queue),
                payload_uid=own_user(folder, f"slot {slot}").uid if rights.own_users else None,
                hidden=rights.hidden,
            )


def set_local_slots(system: System) -> None:
    """Let the worker start pilots on this machine for queues with `submission: local`: as many as there are processors."""
    folder, slots = system.folder, os.cpu_count() or 1
    rights, work = payload_rights(folder), folder / "work" / "submitted"
    make_passed(work, folder)
    uids = [own_user(folder, f"submitted slot {n}").uid for n in range(1, slots + 1)] if rights.own_users else []
    told = {
        "server": system.url,
        "software": str(SOFTWARE),
        "work": str(work),
        "enrolments": str(folder / "enrolments"),
        "slots": slots,
        "payload_uids": uids,
        "hide": [str(hidden) for hidden in rights.hidden],
    }
    file = folder / "local-pilots.json"
    write_private(file, json.dumps(told))
    system.environment["GRIDBROKER_LOCAL_PILOTS"] = str(file)


def _slot_size(queue: ComputingQueue) -> tuple[str, ...]:
    """The slot's size as the queue gives it; what the queue leaves open stays the pilot's own default."""
    named = (("--cores", queue.corecount), ("--memory-mb", queue.maxrss), ("--disk-mb", queue.maxwdir))
    return tuple(part for name, value in named if value for part in (name, str(value)))


def _path_part(queue: ComputingQueue) -> str:
    """The queue's name as part of a path."""
    return quote(queue.name, safe="")
