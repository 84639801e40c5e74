"""How long files and functions may be."""

from __future__ import annotations

from tests.arch.source import files, functions, modules, read

LONGEST_FILE, LONGEST_TEST_FILE, LONGEST_FUNCTION = 400, 700, 60
WRITTEN = (".py", ".html", ".css", ".js", ".sql", ".md")
"""Files that people write; others (schemas, locks) are made or are data."""


def test_no_file_is_too_long() -> None:
    long = []
    for path in files():
        if path.endswith(WRITTEN) and "/migrations/" not in path and not path.endswith(".min.js"):
            lines, most = read(path).count("\n"), LONGEST_TEST_FILE if path.startswith("tests/") else LONGEST_FILE
            long += [f"{path}: {lines} lines, {most} at most"] if lines > most else []
    assert not long, "\n".join(["a room that outgrows its file becomes a folder with a file per idea:", *long])


def test_no_function_is_too_long() -> None:
    long = [
        f"{module.path}:{function.lineno} {name}: {length} lines, {LONGEST_FUNCTION} at most"
        for module in modules()
        if "/migrations/" not in module.path
        for function, name in functions(module)
        if (length := (function.end_lineno or 0) - function.lineno + 1) > LONGEST_FUNCTION
    ]
    assert not long, "\n".join(long)
