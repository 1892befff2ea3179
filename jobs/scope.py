"""Who a note is for: as its front matter says, else as the workspace's rules say of its path, else everybody."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memoryd.store.globs import matches_any
from memoryd.store.scope import ALLOWED, GLOBAL, UNKNOWN, parse_scope

if TYPE_CHECKING:  # the command line reads rules, and must not pay for YAML
    from memoryd.jobs.front_matter import FrontMatter

_SHOWN_CHARS = 60
_MEANT_AS_FRONT_MATTER = re.compile(
    r"\s*---[ \t]*\n(?P<inside>.*?)(?:^(?:---|\.\.\.)[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)
_MEANT_AS_SCOPE = re.compile(r"""^[\s{"']*scope["']?[ \t]*:""", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ScopeRule:
    """Notes whose path matches are for this scope. ``user:*`` is for whoever the folder at the glob's ``*`` names."""

    scope: str
    glob: str

    def scope_of(self, path: str) -> str | None:
        """None = the rule says nothing about this path."""
        if not matches_any(path, (self.glob,)):
            return None
        kind, _, identity = self.scope.partition(":")
        if identity != "*":
            return self.scope
        return parse_scope(f"{kind}:{path.split('/')[_naming_folder(self.glob)]}") or UNKNOWN


def parse_rule(text: str) -> ScopeRule:
    """``agent:coder = memory/agents/coder/**``. Raises ``ValueError`` that says what is wrong."""
    named, equals, glob = (part.strip() for part in text.partition("="))
    if not equals or not glob:
        raise ValueError("it is not of the form scope = glob")
    if glob.startswith("/") or "\0" in glob or ".." in glob.split("/"):
        raise ValueError("its glob leads out of the folder")
    kind, _, identity = named.partition(":")
    scope = parse_scope(f"{kind}:x" if identity.strip() == "*" else named)
    if scope is None:
        raise ValueError(f"its scope is not {ALLOWED}")
    if identity.strip() != "*":
        return ScopeRule(scope, glob)
    if _naming_folder(glob) < 0:
        raise ValueError("a scope with * needs a glob in which a folder is *, and nothing before it is a pattern")
    return ScopeRule(f"{scope.partition(':')[0]}:*", glob)


def _naming_folder(glob: str) -> int:
    """Which part of a path the first ``*`` of the glob stands for; -1 = not a whole folder's name."""
    folders = glob.split("/")[:-1]
    first = next((place for place, part in enumerate(folders) if "*" in part or "?" in part), -1)
    return first if first >= 0 and folders[first] == "*" else -1


def document_scope(
    path: str, text: str, front_matter: FrontMatter, rules: Iterable[ScopeRule]
) -> tuple[str, str | None]:
    """The scope, and what a person should know about it.

    A note that was meant for somebody must not end up with everybody because of a mistake in its front matter.
    """
    stated = [value for key, value in front_matter.values.items() if key.strip().lower() == "scope"]
    stated = [value for value in stated if value is not None and value != ""]  # an empty property says nothing
    if not stated:
        if _is_lost(text, front_matter):
            return UNKNOWN, _notice("its front matter, and the scope in it, cannot be read")
        return next((scope for rule in rules if (scope := rule.scope_of(path))), GLOBAL), None
    scopes = {parse_scope(value) if isinstance(value, str) else None for value in stated}
    if len(scopes) == 1 and (scope := scopes.pop()):
        return scope, None
    found = ", ".join(map(str, stated))
    return UNKNOWN, _notice(f"scope: found {found[:_SHOWN_CHARS]!r}; allowed: {ALLOWED}")


def _is_lost(text: str, front_matter: FrontMatter) -> bool:
    """Whether the text begins with what was meant as front matter, with a scope, and is not read as one."""
    meant = None if front_matter.lines else _MEANT_AS_FRONT_MATTER.match(text)
    return meant is not None and _MEANT_AS_SCOPE.search(meant["inside"]) is not None


def _notice(problem: str) -> str:
    return f"{problem}; only queries without a scope find this note"
