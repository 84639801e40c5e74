"""From a criteria text to its tree, or to what is wrong with it and where.

    criteria   = conjunction { OR conjunction }
    conjunction = condition { AND condition }
    condition  = NOT condition | "(" criteria ")" | predicate
    predicate  = attribute ( sign value | IS [NOT] NULL | [NOT] LIKE value | [NOT] IN "(" value { "," value } ")" )
    value      = :variable | 'text' | number

Words of the language in any case; a quote in a text is doubled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from workqueues.rules.work_queues.criteria.expression import Among, Both, Comparison, Either, Expression, IsNull, Like, Not, Value

DEEPEST = 50
"""Brackets and NOTs inside each other."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<word>[A-Za-z_]\w*)|(?P<variable>:\w+)|(?P<text>'(?:[^']|'')*')
    |(?P<number>-?\d+(?:\.\d+)?(?![\w.]))|(?P<sign><=|>=|<>|!=|[=<>])|(?P<mark>[(),]))""",
    re.VERBOSE,
)
_WORDS = frozenset({"AND", "OR", "NOT", "IN", "LIKE", "IS", "NULL"})


class BadCriteria(ValueError):
    """A text that is no criteria. `position` counts characters from 1; the message says what was expected there."""

    def __init__(self, position: int, expected: str, found: str) -> None:
        super().__init__(f"at character {position}: expected {expected}, found {found}")
        self.position, self.expected, self.found = position, expected, found


class Token(NamedTuple):
    """A piece of the text; kind: word, a keyword in capitals, variable, text, number, sign, mark, or end."""

    kind: str
    text: str
    position: int


def parse(text: str | None, variables: Mapping[str, str] | None = None) -> Expression | None:
    """The tree of a text, None for an empty one. Raises BadCriteria, also for a variable without value."""
    if not (text or "").strip():
        return None
    return _Parser(list(_tokens(text or "")), variables or {}).whole()


def variables_of(text: str | None) -> list[str]:
    """The variables that a text names, in order. Raises BadCriteria where it cannot be cut into pieces."""
    return list(dict.fromkeys(token.text[1:] for token in _tokens(text or "") if token.kind == "variable"))


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while text[at:].strip():
        token = _TOKEN.match(text, at)
        if token is None or token.lastgroup is None:
            begin = at + len(text[at:]) - len(text[at:].lstrip())
            raise BadCriteria(begin + 1, "an attribute, value or sign", repr(text[begin : begin + 10]))
        kind, word = token.lastgroup, token[token.lastgroup]
        if kind == "word" and word.upper() in _WORDS:
            kind = word.upper()
        yield Token(kind, word, token.start(token.lastgroup) + 1)
        at = token.end()
    yield Token("end", "", len(text) + 1)


class _Parser:
    def __init__(self, tokens: list[Token], variables: Mapping[str, str]) -> None:
        self._tokens, self._variables = tokens, variables
        self._at = self._depth = 0

    def whole(self) -> Expression:
        expression = self._criteria()
        self._take("end", "AND, OR or the end")
        return expression

    def _criteria(self) -> Expression:
        return self._chain(self._conjunction, "OR", Either)

    def _conjunction(self) -> Expression:
        return self._chain(self._condition, "AND", Both)

    def _chain(
        self, part: Callable[[], Expression], word: str, join: Callable[[Expression, Expression], Expression]
    ) -> Expression:
        expression = part()
        while self._skip(word):
            expression = join(expression, part())
        return expression

    def _condition(self) -> Expression:
        self._depth += 1
        if self._depth > DEEPEST:
            raise BadCriteria(self._now.position, f"at most {DEEPEST} brackets and NOTs inside each other", "more")
        if self._skip("NOT"):
            expression: Expression = Not(self._condition())
        elif self._now.text == "(":
            self._at += 1
            expression = self._criteria()
            self._take_mark(")")
        else:
            expression = self._predicate(self._take("word", "an attribute, NOT or '('").text)
        self._depth -= 1
        return expression

    def _predicate(self, attribute: str) -> Expression:
        if self._now.kind == "sign":
            return Comparison(attribute, self._take("sign", "a sign").text, self._value())
        if self._skip("IS"):
            negated = self._skip("NOT")
            self._take("NULL", "NULL" if negated else "NULL or NOT NULL")
            expression: Expression = IsNull(attribute)
        else:
            negated = self._skip("NOT")
            expression = self._member(attribute, "LIKE or IN" if negated else "=, <>, <, <=, >, >=, IN, LIKE, NOT or IS")
        return Not(expression) if negated else expression

    def _member(self, attribute: str, expected: str) -> Expression:
        if self._skip("LIKE"):
            return Like(attribute, str(self._value()))
        self._take("IN", expected)
        self._take_mark("(")
        values = [self._value()]
        while self._now.text == "," and self._now.kind == "mark":
            self._at += 1
            values.append(self._value())
        self._take_mark(")")
        return Among(attribute, tuple(values))

    def _value(self) -> Value:
        token = self._now
        self._at += 1
        match token.kind:
            case "variable" if token.text[1:] in self._variables:
                return self._variables[token.text[1:]]
            case "variable":
                known = ", ".join(self._variables) or "none"
                raise BadCriteria(token.position, f"a variable with a value (there are: {known})", token.text)
            case "text":
                return token.text[1:-1].replace("''", "'")
            case "number":
                return float(token.text) if "." in token.text else int(token.text)
        raise BadCriteria(token.position, "a :variable, a 'text' or a number", _token_text(token))

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _skip(self, kind: str) -> bool:
        skipped = self._now.kind == kind
        self._at += skipped
        return skipped

    def _take(self, kind: str, expected: str) -> Token:
        token = self._now
        if token.kind != kind:
            raise BadCriteria(token.position, expected, _token_text(token))
        self._at += 1
        return token

    def _take_mark(self, mark: str) -> None:
        if self._now.text != mark or self._now.kind != "mark":
            raise BadCriteria(self._now.position, repr(mark), _token_text(self._now))
        self._at += 1


def _token_text(token: Token) -> str:
    return "the end" if token.kind == "end" else repr(token.text)


class BadVariables(ValueError):
    """A text that is no list of variables; the message says which entry and why."""


def read_variables(text: str | None) -> Mapping[str, str]:
    r"""Name -> value. Raises BadVariables. A comma in a value is written `\,`."""
    variables: dict[str, str] = {}
    for entry in re.split(r"(?<!\\),", text or ""):
        if not entry.strip():
            continue
        name, colon, value = entry.partition(":")
        name = name.strip()
        if not colon or not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise BadVariables(f"expected name:value, found {entry.strip()!r}")
        if name in variables:
            raise BadVariables(f"{name} has two values")
        variables[name] = value.strip().replace(r"\,", ",")
    return variables
