"""`manage.py sbom`: what runs here, as a bill of materials (CycloneDX, JSON), the servers inside wheels included."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import distributions
from typing import Any

from django.core.management.base import BaseCommand

from broker_site.roof.embedded import NoPlace
from broker_site.roof.embedded.postgres import WHEEL as POSTGRES_WHEEL
from broker_site.roof.embedded.postgres import find_software
from broker_site.roof.embedded.redis_server import WHEEL as REDIS_WHEEL
from broker_site.roof.embedded.redis_server import find_binary, version


class Command(BaseCommand):
    """Auditors of packages see the wheels, not the servers that two of them carry."""

    help = "Print the packages of this environment and the private servers, with versions, as CycloneDX JSON."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Starts no server."""
        document = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": [*_packages(), *_servers()]}
        self.stdout.write(json.dumps(document, indent=1))


def _packages() -> Iterator[dict[str, Any]]:
    for name, release in sorted({(each.name, each.version) for each in distributions()}):
        plain = re.sub(r"[-_.]+", "-", name).lower()
        yield {"type": "library", "name": name, "version": release, "purl": f"pkg:pypi/{plain}@{release}"}


def _servers() -> Iterator[dict[str, Any]]:
    """The binaries that `make up` would start."""
    with suppress(NoPlace):
        yield _server("redis", "redis", version(), str(find_binary()), REDIS_WHEEL)
    try:
        binary = find_software() / "bin" / "postgres"
    except NoPlace:
        return
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    yield _server("postgresql", "postgresql", said.split()[2], str(binary), POSTGRES_WHEEL)


def _server(name: str, vendor: str, release: str, path: str, wheel: str) -> dict[str, Any]:
    inside = [{"name": "inside", "value": wheel}] if wheel in path else []
    return {
        "type": "application",
        "name": name,
        "version": release,
        "cpe": f"cpe:2.3:a:{vendor}:{name}:{release}:*:*:*:*:*:*:*",
        "properties": [{"name": "path", "value": path}, *inside],
    }
