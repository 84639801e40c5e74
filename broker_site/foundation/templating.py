"""Django's templates with two shorter ways, for pages of thousands of values and hundreds of links; what they render is the same.

A value that is a text or a whole number is neither localised nor asked for its time zone. A link finds its pattern once: the link
to a row is the pattern with the number in it, and links that were made before are kept. `register` is a library for `builtins`.
"""

from __future__ import annotations

from functools import lru_cache
from html import escape
from typing import Any

from django.conf import settings
from django.template import Context, Library, Template, defaulttags
from django.template.base import Parser, Token, VariableNode, render_value_in_context
from django.template.loaders import cached
from django.urls import NoReverseMatch, get_resolver, get_script_prefix, get_urlconf, reverse
from django.utils.safestring import SafeString

register = Library()

KEPT_LINKS = 4_096
TEXTS = (str, SafeString)
ANY_NUMBER, BELOW = 987_654_321, 10**18
"""Stands for the number of a row in a pattern; numbers below `BELOW` are written alike."""


class Value(VariableNode):
    """`{{ value }}`."""

    def render(self, context: Context) -> SafeString | str:
        """The value as it stands on the page."""
        try:
            value = self.filter_expression.resolve(context)
        except UnicodeDecodeError:
            return ""
        kind = type(value)
        if kind is str and context.autoescape:
            return escape(value)
        if kind is SafeString:
            return str(value)
        if kind is int and not settings.USE_THOUSAND_SEPARATOR:
            return str(value)
        return render_value_in_context(value, context)


class Loader(cached.Loader):
    """Keeps compiled templates, with the short way to their values."""

    def get_template(self, template_name: str, skip: Any = None) -> Template:
        """The template; TemplateDoesNotExist."""
        template = super().get_template(template_name, skip)
        if not hasattr(template, "quick"):
            for node in template.nodelist.get_nodes_by_type(VariableNode):
                if type(node) is VariableNode:
                    node.__class__ = Value
            template.quick = True  # type: ignore[attr-defined]
        return template


class Link(defaulttags.URLNode):
    """`{% url %}`."""

    def render(self, context: Context) -> SafeString | str:
        """The address, or "" where it is left in a variable."""
        name = self.view_name.resolve(context)
        if self.kwargs or type(name) not in TEXTS or ":" in name:
            return super().render(context)
        try:
            url = _address(name, [arg.resolve(context) for arg in self.args])
        except NoReverseMatch:
            return super().render(context)  # which tells of it
        if self.asvar:
            context[self.asvar] = url
            return ""
        return escape(url) if context.autoescape else url


@register.tag
def url(parser: Parser, token: Token) -> defaulttags.URLNode:
    """As Django's."""
    node = defaulttags.url(parser, token)
    node.__class__ = Link
    return node


def _address(name: str, args: list[Any]) -> str:
    patterns, prefix = get_resolver(get_urlconf()), get_script_prefix()
    if len(args) == 1 and type(args[0]) is int and 0 <= args[0] < BELOW:
        before, after = _around(patterns, prefix, name)
        return f"{before}{args[0]}{after}"
    if all(type(arg) in (*TEXTS, int) for arg in args):
        return _kept(patterns, prefix, name, *args)
    return reverse(name, args=args)


@lru_cache(KEPT_LINKS)
def _around(patterns: object, prefix: str, name: str) -> tuple[str, str]:
    """What stands before and after the number of a row."""
    before, _, after = reverse(name, args=[ANY_NUMBER]).partition(str(ANY_NUMBER))
    return before, after


@lru_cache(KEPT_LINKS, typed=True)
def _kept(patterns: object, prefix: str, name: str, *args: Any) -> str:
    return reverse(name, args=args)
