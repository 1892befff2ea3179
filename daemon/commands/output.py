"""How commands speak: data on stdout, everything else on stderr, colour and tables on a terminal only."""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False  # see plain_words
if TYPE_CHECKING:
    from typing import Any

    from rich.console import Console

    from memoryd.store.errors import MemorydError

_WIDE = 200  # columns where nobody's screen sets a limit


def print_json(data: object) -> None:
    sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2, default=str) + "\n")


def say(words: str) -> None:
    """For the person, not for the program that reads stdout."""
    sys.stderr.write(f"{words}\n")


def print_error(error: MemorydError, *, as_json: bool) -> None:
    if as_json:
        print_json({"error": {"code": error.code, "message": error.message, "hint": error.hint}})
    problems = error.message.splitlines()
    if len(problems) > 1:
        say(f"memoryd: {len(problems)} problems:")
        say("\n".join(f"  {problem}" for problem in problems))
    else:
        say(f"memoryd: {error.message}")
    if error.hint:
        say(f"  → {error.hint}")


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDE
    # What is shown has names in it that are not ours: "embed:notes:a.md" is no emoji, "[red]x" no colour.
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=False, emoji=False, markup=False)


def size(count: int) -> str:
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def span(seconds: float) -> str:
    """A duration as people say it, in its one or two largest units."""
    seconds = max(0, round(seconds))
    if seconds < 60:
        return f"{seconds} s"
    minutes, _ = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"


def ago(iso: str | None) -> str:
    if iso is None:
        return "never"
    return f"{span(-_from_now(iso))} ago"


def until(iso: str) -> str:
    return f"in {span(_from_now(iso))}"


def _from_now(iso: str) -> float:
    from datetime import UTC, datetime

    return (datetime.fromisoformat(iso) - datetime.now(UTC)).total_seconds()


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def embedder_name(embedder: dict[str, Any]) -> str:
    """The model that is used or wanted, by what status says; none where none is."""
    return str(embedder["model"] or ("none" if embedder["provider"] == "none" else embedder["configured"]))
