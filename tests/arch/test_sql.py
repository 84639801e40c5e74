"""SQL text is made of constants: values go through parameters, and only constants of the code may stand in a statement."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.arch.source import Function, Module, called, functions, product, walked

RUNS_SQL = frozenset({"execute", "executemany", "copy_expert", "raw", "RawSQL", "extra", "RunSQL", "Prepared", "KeptCounts"})
TEXT_AT = {"Prepared": 2}
"""Where the SQL stands among the arguments, if not first."""

ALLOWED = {
    ("broker_site/foundation/sql/prepared.py", "Prepared.ensure"): "PREPARE around a text that is checked where Prepared is made",
    (
        "broker_site/foundation/sql/prepared.py",
        "run_together",
    ): "EXECUTE statements whose values mogrify has quoted, joined into one round trip",
    ("brokerage/queries/kept_counts.py", "KeptCounts.answer"): "around a text that is checked where KeptCounts is made",
    ("broker_site/foundation/sql/roles.py", "grant"): "constants of the same file, with names of roles quoted by psycopg2",
    ("brokerage/queries/invariants/__init__.py", "look_at"): "the statement is one of the constants in INVARIANTS",
    (
        "broker_site/foundation/sql/copying.py",
        "copy_lines",
    ): "table and columns; test_what_is_copied_to_is_constant holds its callers",
}
"""Where a statement has a part that the rules below cannot follow: (file, function) -> why it is a constant all the same."""


def test_no_statement_is_put_together_from_values() -> None:
    bad = [
        f"{module.path}:{call.lineno} {scope}: {ast.unparse(text)[:100]}"
        for module, call, scope, text in _statements()
        if (module.path, scope) not in ALLOWED and not _is_constant(module, text, scope)
    ]
    assert not bad, "\n".join(["pass values as parameters, and put only named constants into SQL:", *bad])


def test_what_is_copied_to_is_constant() -> None:
    for module in product():
        for node, scope in walked(module):
            own = module.path == "broker_site/foundation/sql/copying.py"
            if called(node) in ("copy_rows", "copy_lines") and isinstance(node, ast.Call) and not own:
                parts = [p for part in node.args[:2] for p in (part.elts if isinstance(part, ast.List) else [part])]
                assert all(_is_constant(module, part, scope) for part in parts), f"{module.path}:{node.lineno}"


def test_every_exception_is_still_needed() -> None:
    still = {(module.path, scope) for module, _, scope, text in _statements() if not _is_constant(module, text, scope)}
    assert set(ALLOWED) <= still


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("cursor.execute('SELECT 1')", True),
        ("cursor.execute(TEXT)", True),
        ("cursor.execute(f'SELECT {NAMES[name]}')", True),
        ("cursor.execute(TEXT.format(only=NAMES[name]))", True),
        ("cursor.execute(f'SELECT 1 WHERE status IN ({TASK.live.sql})')", True),
        ("cursor.execute(f'SELECT 1 WHERE status IN ({TASK.accepting(\"end\").sql})')", True),
        ("cursor.execute(f'SELECT 1 WHERE status IN ({TASK.accepting(name).sql})')", False),
        ("cursor.execute(f'SELECT 1 WHERE status IN ({given.sql})')", False),
        ("cursor.execute(f'SELECT 1 WHERE status IN ({NAMES.sql})')", False),
        ("cursor.execute(f'SELECT {TASK.live}')", False),
        ("cursor.execute(f'SELECT {name}')", False),
        ("cursor.execute('SELECT ' + name)", False),
        ("cursor.execute('SELECT %s' % name)", False),
        ("cursor.execute(TEXT.format(only=name))", False),
        ("cursor.execute(name)", False),
    ],
)
def test_the_rule_bites(text: str, good: bool) -> None:
    source = (
        "from workqueues.states import TASK\nTEXT = 'SELECT {only}'\nNAMES = {'a': 'b'}\n"
        f"def run(cursor, *, given):\n    name = given\n    {text}\n"
    )
    module = Module("sample.py", source, ast.parse(source))
    [(call, scope)] = [(n, s) for n, s in walked(module) if isinstance(n, ast.Call) and called(n) == "execute"]
    assert _is_constant(module, call.args[0], scope) is good


def _statements() -> Iterator[tuple[Module, ast.Call, str, ast.expr]]:
    for module in product():
        for node, scope in walked(module):
            if isinstance(node, ast.Call) and called(node) in RUNS_SQL:
                at = TEXT_AT.get(called(node), 0)
                if len(node.args) > at:
                    yield module, node, scope, node.args[at]


def _is_constant(module: Module, text: ast.expr, scope: str) -> bool:
    """Whether the expression is text of the code: a literal, a constant of a module, or one of a constant's entries."""
    match text:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name in module.constants or _every_caller_gives_a_constant(module, name, scope)
        case ast.JoinedStr(values=parts):
            return all(_is_constant(module, part, scope) for part in parts)
        case ast.FormattedValue(value=value):
            return _is_constant(module, value, scope)
        case ast.Attribute(value=names, attr="sql"):
            return _is_declared(module, names)
        case ast.Subscript(value=ast.Name(id=name)):
            return name in module.constants
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Attribute(value=ast.Name(id="sql"), attr="SQL")), attr="format")
        ):
            return True  # psycopg2.sql takes only parts that it quotes itself
        case ast.Call(func=ast.Attribute(value=template, attr="format"), args=[], keywords=fills):
            return all(_is_constant(module, part, scope) for part in [template, *(fill.value for fill in fills)])
        case ast.Call(func=ast.Name(id=name), args=[]):
            return _returns_constant(module, name)
        case _:
            return False


def _is_declared(module: Module, names: ast.expr) -> bool:
    """Whether the expression is a set of names that `states` declares: an attribute or method of what is imported from there."""
    match names:
        case ast.Name(id=name):
            imports = (s for s in module.tree.body if isinstance(s, ast.ImportFrom) and ".states" in (s.module or ""))
            return any(name == (alias.asname or alias.name) for s in imports for alias in s.names)
        case ast.Attribute(value=machine):
            return _is_declared(module, machine)
        case ast.Call(func=ast.Attribute(value=machine), args=args, keywords=[]):
            return _is_declared(module, machine) and all(isinstance(arg, ast.Constant) for arg in args)
        case _:
            return False


def _returns_constant(module: Module, name: str) -> bool:
    returns = [n for n, scope in walked(module) if isinstance(n, ast.Return) and scope == name]
    return bool(returns) and all(n.value is not None and _is_constant(module, n.value, name) for n in returns)


def _every_caller_gives_a_constant(module: Module, parameter: str, scope: str) -> bool:
    """Whether `parameter` is one of the function `scope`, and each call of it in the product has a constant there."""
    function = next((f for f, name in functions(module) if name == scope), None)
    at = _place(function, parameter)
    if function is None or at is None:
        return False
    calls = list(_calls(module, function.name))
    return bool(calls) and all(
        len(call.args) > at and _is_constant(caller, call.args[at], where) for caller, call, where in calls
    )


def _place(function: Function | None, parameter: str) -> int | None:
    names = [a.arg for a in function.args.args] if function else []
    return names.index(parameter) if parameter in names else None


def _calls(module: Module, name: str) -> Iterator[tuple[Module, ast.Call, str]]:
    """Calls of a function of the module, in it and in those that import it."""
    dotted = module.path.removesuffix(".py").replace("/", ".")
    for other in product():
        imported = any(
            isinstance(s, ast.ImportFrom) and s.module == dotted and name in {a.name for a in s.names} for s in other.tree.body
        )
        if imported or other.path == module.path:
            for node, scope in walked(other):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                    yield other, node, scope
