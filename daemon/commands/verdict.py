"""Whether all is well, in a mark, a colour and words: the first line of every status."""

from __future__ import annotations

from typing import Any

from memoryd.daemon.commands.output import plural

Verdict = tuple[str, str, str]  # mark, colour, words


def verdict_of(status: dict[str, Any]) -> Verdict:
    health = status["health"]
    if health["state"] == "degraded":
        count = len(health["reasons"])
        return "▲", "yellow", f"degraded, {plural(count, 'thing')} {'needs' if count == 1 else 'need'} doing"
    if health["state"] == "indexing":
        pending = sum(workspace["pending"] for workspace in status["workspaces"])
        return "◐", "cyan", "well, and indexing" + (f" ({plural(pending, 'file')} pending)" if pending else "")
    if paused := status["embedder"]["paused"]:
        return "●", "green", f"all is well, embedding paused: {paused['reason']}"
    return "●", "green", "all is well"
