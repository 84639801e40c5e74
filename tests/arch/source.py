"""The repository as the architecture tests see it: its files, and its Python parsed once."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPS = ("broker_site", "workqueues", "brokerage", "monitoring")
"""What runs in production."""

NOT_OURS = {"__pycache__", "node_modules", "staticfiles", "vendor"}
"""Folders whose files nobody here wrote."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    """One Python file: path from the root with slashes, text and tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def constants(self) -> frozenset[str]:
        """Names that the module binds at its top level, imports included."""
        return frozenset(_bound(self.tree.body))


@cache
def files() -> tuple[str, ...]:
    """Every file of ours, as a path from the root."""
    found = []
    for folder, below, names in os.walk(ROOT):
        here = Path(folder).relative_to(ROOT)
        below[:] = [b for b in below if b not in NOT_OURS and (not b.startswith(".") or b == ".ci")]
        found += [(here / name).as_posix() for name in names if not name.endswith(".pyc")]
    return tuple(sorted(found))


def read(path: str) -> str:
    """The text of a file of ours."""
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def modules() -> tuple[Module, ...]:
    """All Python of ours."""
    return tuple(Module(path, text := read(path), ast.parse(text, path)) for path in files() if path.endswith(".py"))


def product() -> Iterator[Module]:
    """The Python that runs in production, written by hand."""
    return (m for m in modules() if m.path.startswith(tuple(f"{app}/" for app in APPS)) and "/migrations/" not in m.path)


@cache
def walked(module: Module) -> tuple[tuple[ast.AST, str], ...]:
    """Every node of a module with the qualified name of the function, class or constant around it, `` at the top."""
    found: list[tuple[ast.AST, str]] = []
    _walk(module.tree, "", found)
    return tuple(found)


def functions(module: Module) -> Iterator[tuple[Function, str]]:
    """Every function with its qualified name."""
    for node, scope in walked(module):
        if isinstance(node, Function):
            yield node, f"{scope}.{node.name}".lstrip(".")


def called(node: ast.AST) -> str:
    """The last name of what a call calls, `` where the node is no call of a name."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _walk(node: ast.AST, scope: str, found: list[tuple[ast.AST, str]]) -> None:
    for child in ast.iter_child_nodes(node):
        kind = type(child)
        if kind in _LEAVES:
            continue
        found.append((child, scope))
        _walk(child, _inside(node, child, scope) if kind in _NAMING else scope, found)


_LEAVES = frozenset({ast.Load, ast.Store, ast.Del})
_NAMING = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign})


def _inside(parent: ast.AST, node: ast.AST, scope: str) -> str:
    """The scope of what is inside a node that may give it a name."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return f"{scope}.{name}".lstrip(".")
        case ast.Assign(targets=[ast.Name(id=name)]) if isinstance(parent, ast.Module):
            return name
        case _:
            return scope


def _bound(body: list[ast.stmt]) -> Iterator[str]:
    for statement in body:
        match statement:
            case ast.Assign(targets=targets):
                yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name for alias in names)
            case _:
                continue
