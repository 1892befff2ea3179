"""What a file is called: people name files by what is in them, and ask for them by that."""

from __future__ import annotations

from memoryd.store.model import FACTS, SESSIONS

_UNNAMED = {FACTS, SESSIONS}  # sources whose files are named by numbers


def name_of(path: str, source: str) -> str:
    """A path without the folder that all of its source are in; "" where it says nothing."""
    return "" if source in _UNNAMED else path.removeprefix(f"{source}/")


def indexed_heading(heading: str, path: str | None, source: str | None) -> str:
    """What stands above a chunk in the keyword indexes: its breadcrumb, and what its file is called.

    Damage may have taken the document away.
    """
    name = name_of(path, source) if path and source else ""
    return f"{heading} > {name}" if heading and name else heading or name
