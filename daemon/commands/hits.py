"""What a search found: coloured on a terminal, one fact a line in a pipe, and what must be known to judge it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from memoryd.daemon.commands.output import plural, say
from memoryd.daemon.commands.painting import Painted, Screen, find_screen
from memoryd.daemon.commands.snippets import inert, shorten_snippet

_SNIPPET_LINES = 6
_DAYS = 3  # stretches of days that are named, and
_WORDS = 3  # words that nothing has


def print_answer(answer: dict[str, Any]) -> None:
    if sys.stdout.isatty() and "fence" not in answer:
        _print_pretty(answer)
        return
    for hit in answer["results"]:
        if "fence" in answer:  # nothing of the note outside of it, nothing changed inside
            sys.stdout.write(f"{hit['citation']}\t{hit['score']:.3f}\n{hit['snippet']}\n")
            continue
        sys.stdout.write(f"{hit['citation']}\t{hit['score']:.3f}\t{hit['heading']}\n")
        if "origin" in hit:
            sys.stdout.write(f"    from {inert(hit['origin']['citation'])}\n")
        if "superseded" in hit:
            sys.stdout.write(f"    {outdated(hit)}\n")
        sys.stdout.writelines(f"    {line}\n" for line in hit["snippet"].splitlines())
        sys.stdout.writelines(f"    = {line}\n" for line in _explain_hit(hit, answer))
    sys.stdout.writelines(f"= {line}\n" for line in _explain_answer(answer))


def print_caveats(answer: dict[str, Any]) -> None:
    """What must be known to judge the answer; on stderr, where it does not disturb a pipe."""
    if not answer["results"]:
        absence = answer["absence"]
        say(f"Nothing found: {absence['reason']}." if absence else "Nothing found.")
        if absence and absence["hint"]:
            say(f"  → {absence['hint']}")
    if doubt := answer.get("doubt"):  # a daemon of before has none
        say(f"Doubtful: {inert(doubt['reason'])}.")
        say(f"  → {doubt['hint']}")
    elif answer["results"] and (missing := answer.get("missing")):
        say(describe_missing(missing))
    if answer["degraded"]:
        say(describe_degraded(answer["degraded"]["leg"], answer["degraded"]["reason"]))
        if answer["degraded"]["hint"]:
            say(f"  → {answer['degraded']['hint']}")
    if answer["results"] and (period := answer.get("period")):  # a daemon of before names none
        say(describe_period(period))
    print_hyde(answer["hyde"])
    print_rerank(answer["rerank"])
    late = [entry for entry in answer["pending"] if entry["phase"] == "text"]
    if late:
        say(f"Not searchable yet: {', '.join(entry['path'] for entry in late[:3])}{' …' if len(late) > 3 else ''}.")
    elif answer["pending_count"] and not answer["pending"]:
        say(f"{plural(answer['pending_count'], 'file')} not read yet.")
    elif answer["pending_count"]:
        say(f"{plural(answer['pending_count'], 'file')} not yet searchable by meaning (found by words already).")
    if answer["paused"]:
        say(f"  {answer['paused']}")


def print_rerank(rerank: dict[str, Any] | None) -> None:
    if rerank is None or rerank["used"] or not rerank["hint"]:  # what has no remedy is how it should be
        return
    say(f"Not reranked: {rerank['reason']}.")
    say(f"  → {rerank['hint']}")


def describe_period(period: dict[str, Any]) -> str:
    days = [each["first"] if each["first"] == each["last"] else " to ".join(each.values()) for each in period["days"]]
    shown = f"{', '.join(days[:_DAYS])}{' …' if len(days) > _DAYS else ''}"
    return f"Notes of “{inert(period['said'])}” come first: {shown}."


def describe_missing(words: Sequence[str]) -> str:
    named = " or ".join(f"“{inert(word)}”" for word in words[:_WORDS])
    return f"Nothing here mentions {named}{' …' if len(words) > _WORDS else ''}."


def describe_degraded(leg: str, reason: str | None) -> str:
    what = "By keywords alone" if leg == "vector" else "Not all of it was searched"
    return f"{what}: {reason}." if reason else f"{what}."


def print_hyde(hyde: dict[str, Any] | None) -> None:
    if hyde is None:
        return
    if not hyde["used"]:
        say(f"Without a hypothetical answer: {hyde['reason']}.")
        if hyde["hint"]:
            say(f"  → {hyde['hint']}")
    elif "text" in hyde:
        say(f"Searched by the hypothetical answer: {hyde['text']}")


def outdated(hit: dict[str, Any]) -> str:
    return f"superseded by {hit['superseded_by']}" if hit["superseded_by"] else "superseded"


def _print_pretty(answer: dict[str, Any]) -> None:
    screen = find_screen()
    for number, hit in enumerate(answer["results"], start=1):
        title = Painted().append(f"{number:>2}  ", "dim").append(inert(hit["citation"]), "bold cyan")
        title.append(f"   {hit['score']:.2f}", "green")
        if hit["heading"]:
            title.append(f"   {inert(hit['heading'])}", "yellow")
        screen.show(title, crop=True)
        if "origin" in hit:
            screen.show(Painted().append(f"from {inert(hit['origin']['citation'])}", "cyan"), indent=4)
        if "superseded" in hit:
            screen.show(Painted().append(inert(outdated(hit)), "red"), indent=4)
        screen.show(shorten_snippet(hit, _SNIPPET_LINES), indent=4)
        _print_dim(screen, _explain_hit(hit, answer))
        sys.stdout.write("\n")
    if answer["results"]:
        screen.show(Painted().append(f"{plural(len(answer['results']), 'hit')} in {answer['took_ms']:.0f} ms", "dim"))
    if lines := _explain_answer(answer):
        sys.stdout.write("\n")
        _print_dim(screen, lines)


def _print_dim(screen: Screen, lines: list[str]) -> None:
    for line in lines:
        screen.show(Painted().append(inert(line), "dim"), indent=4)


def _explain_hit(hit: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    """None unless it was asked for."""
    if "explain" not in hit:
        return []
    from memoryd.daemon.commands.explanation import explain_hit

    return explain_hit(hit, answer["results"])


def _explain_answer(answer: dict[str, Any]) -> list[str]:
    if "weights" not in answer:
        return []
    from memoryd.daemon.commands.explanation import explain_answer

    return explain_answer(answer)
