"""Nothing of one machine or one network stands in a file: no path of somebody's home, no host of a package registry."""

from __future__ import annotations

import re

import pytest

from tests.arch.source import files, read

OF_A_MACHINE = re.compile(r"(?<![\w.}])/(?:work|root)/|(?<![\w.])/home/[a-z]|\.\./shared\b")
REGISTRIES = ("py" + "pi", "python" + "hosted", "npm" + "js", "arti" + "factory")
OF_A_REGISTRY = re.compile(rf"https?://[\w.\-]*(?:{'|'.join(REGISTRIES)})")


def test_no_file_names_a_machine_or_a_registry() -> None:
    bad = []
    for path in files():
        try:
            text = read(path)
        except UnicodeDecodeError:
            continue  # an image
        bad += [f"{path}: {found[0]}" for rule in (OF_A_MACHINE, OF_A_REGISTRY) for found in rule.finditer(text)]
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize(
    "text", ["cd " + "/wo" + "rk/tree", "see ../" + "shared/x", "://".join(("https", f"{REGISTRIES[0]}.org/simple"))]
)
def test_the_rule_bites(text: str) -> None:
    assert any(rule.search(text) for rule in (OF_A_MACHINE, OF_A_REGISTRY))
