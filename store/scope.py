"""Who a note is for: everybody, or one user, agent or session."""

from __future__ import annotations

import unicodedata

GLOBAL = "global"
UNKNOWN = "unknown"  # the note's author meant somebody, but not in words that say whom: no query can name it
ALLOWED = "global, user:<id>, agent:<id> or session:<id>"

_KINDS = ("user", "agent", "session")
_LONGEST = 200  # characters


def parse_scope(text: str) -> str | None:
    """The scope as it is stored and compared; None = not one. A ``*`` is never part of one: it means many elsewhere."""
    kind, colon, identity = (part.strip() for part in unicodedata.normalize("NFC", text).partition(":"))
    if not colon:
        return GLOBAL if kind.lower() == GLOBAL else None
    scope = f"{kind.lower()}:{identity}"
    fits = bool(identity) and "*" not in identity and identity.isprintable() and len(scope) <= _LONGEST
    return scope if fits and kind.lower() in _KINDS else None


def seen_from(scope: str) -> tuple[str, ...]:
    """The scopes of the notes that a query with this scope sees."""
    return (GLOBAL,) if scope == GLOBAL else (GLOBAL, scope)
