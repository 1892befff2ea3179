"""What a check found: whether it is well, one line why, and the fix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "problem"]

LISTED = 10  # names in a finding; the message has the whole count


@dataclass(frozen=True, slots=True)
class Finding:
    check: str  # what was looked at
    state: State
    message: str
    fix: str | None = None  # for what is not well: a command, or what to do
    details: tuple[str, ...] = ()  # names of files, and the like


def ok(check: str, message: str) -> Finding:
    return Finding(check, "ok", message)


def warning(check: str, message: str, fix: str, details: tuple[str, ...] = ()) -> Finding:
    return Finding(check, "warning", message, fix, details[:LISTED])


def problem(check: str, message: str, fix: str, details: tuple[str, ...] = ()) -> Finding:
    return Finding(check, "problem", message, fix, details[:LISTED])
