"""Which memoryd this process runs."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version


@cache
def own_version() -> str:
    """As it was when it was first asked for: an upgrade changes what is installed, not what runs."""
    return version("memoryd")
