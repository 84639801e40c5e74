"""The bill of materials names the servers that the wheels carry, which no audit of packages sees."""

from __future__ import annotations

import io
import json
import subprocess

from django.core.management import call_command

from broker_site.roof.embedded.redis_server import find_binary


def test_the_versions_of_the_private_servers_are_told() -> None:
    out = io.StringIO()
    call_command("sbom", stdout=out)
    document = json.loads(out.getvalue())
    components = {each["name"]: each for each in document["components"]}
    assert document["bomFormat"] == "CycloneDX"
    assert components["Django"]["purl"].startswith("pkg:pypi/django@")
    said = subprocess.run([find_binary(), "--version"], capture_output=True, text=True, check=True).stdout
    servers = [each for each in document["components"] if each["type"] == "application"]
    assert [each["name"] for each in servers] == ["redis", "postgresql"]
    assert f"v={servers[0]['version']} " in said
    assert all(each["version"][0].isdigit() and each["cpe"] for each in servers)
