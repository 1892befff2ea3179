"""What LanceDB is told besides a URI: ``name = value``, and of every key only where it is kept.

A key is named by reference (``env:``, ``file:`` or ``credential:``), so that the configuration holds none and none can
be shown. It is read each time it is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from memoryd.jobs.keys import KeyPlace
from memoryd.store.errors import VectorsAway

REFERENCES: Final = ("env", "file", "credential")
_SECRET: Final = frozenset({"key", "token", "secret", "password", "sas", "signature"})


@dataclass(frozen=True, slots=True)
class StorageOption:
    name: str
    value: str  # the value itself, or the name of the place that a reference leads to
    kind: str = ""  # of REFERENCES; empty: it is the value

    def __str__(self) -> str:
        return f"{self.name} = {self.kind}:{self.value}" if self.kind else f"{self.name} = {self.value}"

    def read(self, environ: Mapping[str, str]) -> str:
        """Raises ``VectorsAway`` where the key is not."""
        if not self.kind:
            return self.value
        named = {"env": "variable", "file": "file", "credential": "credential"}[self.kind]
        place = KeyPlace("store", f"the vectors' {self.name}", named_by="storage_options", **{named: self.value})
        return place.read(environ, VectorsAway)


def parse_option(text: str) -> StorageOption:
    """Raises ``ValueError`` that says what is wrong, without the value: it may be a key."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not re.fullmatch(r"[A-Za-z][\w.-]{0,99}", name, re.ASCII):
        raise ValueError("one is not of the form name = value")
    kind, colon, rest = value.partition(":")
    if colon and kind in REFERENCES:
        if not rest or (kind == "env" and not rest.isidentifier()):
            raise ValueError(f"{name} does not say which {kind}")
        return StorageOption(name, rest, kind)
    if not _SECRET.isdisjoint(re.split(r"[_.-]", name.lower())):
        raise ValueError(f"{name} is a secret: say where it is kept, as env:NAME, file:PATH or credential:NAME")
    if not value or not value.isprintable():
        raise ValueError(f"{name} has no value")
    return StorageOption(name, value)


def read_options(options: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    return {option.name: option.read(environ) for option in map(parse_option, options)}
