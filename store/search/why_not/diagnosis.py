"""From where a passage was lost to a verdict and its reasons.

Where a reason would tell what a note says (its words, its ranks, its lines), it is given only to a query that may see
the note.
"""

from __future__ import annotations

from memoryd.store.search.answer import Candidate, LegRank
from memoryd.store.search.why_not.case import Case
from memoryd.store.search.why_not.changes import Change
from memoryd.store.search.why_not.finding import Finding, Remedy, Verdict, stages_to
from memoryd.store.search.why_not.reasons import describe_age, describe_filter, describe_ranks, describe_words
from memoryd.store.search.why_not.remedies import find_remedies, find_words, unhide
from memoryd.store.search.why_not.spot import Spot
from memoryd.store.search.why_not.target import TargetChunk

_TOO_FAR = "No setting helps: the query and the passage have too little in common."


def find_reason(case: Case) -> Finding:
    """Of a passage of an indexed document."""
    if case.is_anothers():
        return _anothers(case)
    if not case.target.chunks:
        return _no_such_line(case)
    spot = case.spot()
    if spot.stage == "absent":
        filters = case.filters()
        return _filtered(case, filters) if filters else _not_a_candidate(case)
    if spot.hit and spot.stage == "found":
        joins = "" if case.target.chunk(spot.hit.candidate.chunk_id) else ", which joins it to an overlapping chunk"
        words = f"Found: hit {spot.place}, {spot.hit.citation}{joins}, score {spot.hit.score:.2f}."
        return _describe(case, spot, "found", words, limit=f"hit {spot.place}, {case.limit} asked for")
    return _lost(case, spot)


# -- not seen ---------------------------------------------------------------------------------------------------


def _anothers(case: Case) -> Finding:
    """Not even whether the line exists, nor how the note would rank: a query could sound out what it says."""
    reason = describe_filter(case, "scope")
    changes = (unhide(case, "scope"),)
    return Finding(
        "filtered",
        f"Hidden by {reason}.",
        stages=stages_to("filtered", {"filters": reason}),
        remedies=() if case.changed(changes).filters() else (Remedy(changes, None),),
    )


def _no_such_line(case: Case) -> Finding:
    lines = case.target.lines
    has = f"has {lines:,} line{'' if lines == 1 else 's'}" if lines else "is empty"
    words = f"{case.target.path} {has}; there is no line {case.target.line:,}."
    return Finding("no_such_line", words, stages=stages_to("no_such_line", {}))


def _filtered(case: Case, names: list[str]) -> Finding:
    reasons = [describe_filter(case, name) for name in names]
    return Finding(
        "filtered",
        f"Hidden by {', and by '.join(reasons)}.",
        chunk=case.target.chunks[0],
        stages=stages_to("filtered", {"indexed": _lines(case), "filters": "; ".join(reasons)}),
        remedies=find_remedies(case),
    )


# -- not brought ------------------------------------------------------------------------------------------------


def _not_a_candidate(case: Case) -> Finding:
    deep = case.deepened().spot()
    degraded = case.answer().degraded
    late = bool(case.missing_vectors()) and case.settings.weights["vector"] > 0
    # What no leg sees anything in is no candidate, but has its ranks all the same, which count in this fusion.
    ranked = deep.candidate or case.changed((Change("search.fusion", "rrf"),)).deepened().spot().candidate
    legs = _legs(case, ranked)
    ranks = describe_ranks(legs)
    remedies = find_remedies(case)
    hint = None
    explanation = f"No leg brought it: each proposes {case.settings.candidates:,} chunks, and "
    explanation += f"it is {ranks}." if ranks else "none of them sees anything in it."
    explanation += f" {describe_words(case.shared_words())}"
    if degraded:
        explanation += f" The {degraded.leg} leg did not run: {degraded.reason}."
        hint = degraded.hint
    elif late:
        explanation += " It cannot be found by its meaning yet."
        hint = "Wait: its vectors are pending."
    elif not remedies:
        suggested = find_words(case)
        remedies = (suggested,) if suggested else ()
        hint = f"{_TOO_FAR} Ask in words that the passage has."
    return Finding(
        "vectors_pending" if late and not degraded else "not_a_candidate",
        explanation,
        place=deep.place or deep.standing,
        chunk=_chunk(case, deep.candidate),
        stages=stages_to(
            "not_a_candidate", {"indexed": _lines(case), "candidates": ranks or "no leg sees anything in it"}
        ),
        legs=legs,
        words=case.shared_words(),
        remedies=remedies,
        hint=hint,
    )


# -- brought, and lost --------------------------------------------------------------------------------------------


def _lost(case: Case, spot: Spot) -> Finding:
    candidate = spot.candidate
    assert candidate  # noqa: S101 - a leg brought it
    if spot.stage == "duplicate":
        first = f"hit {spot.place}, {spot.hit.citation}" if spot.hit else f"{case.citation(spot.by or 0)}, lost itself"
        words = f"The same text counts once, and stands elsewhere too: {first}."
        return _describe(case, spot, "duplicate", words, duplicates=f"the text of {first}")
    unaged = case.changed((Change("search.decay.strength", 0.0),)).spot() if candidate.decay < 1 else None
    if spot.stage == "abstain":
        best = max(other.relevance for other in case.candidates())
        below = f"{best:.3f}, less than {case.answer().least:.3g} (search.abstain)"
        words = f"Nothing seems to answer this: the best candidate has a relevance of {below}."
        return _describe(case, spot, "abstained", words, min_score=f"the best has {below}")
    if spot.stage == "min_score":
        below = f"{candidate.score:.3f}, less than min_score {case.min_score:g}"
        if unaged and unaged.is_found:
            return _describe(case, spot, "decayed", f"{describe_age(candidate)}: it scores {below}.", decay=below)
        return _describe(case, spot, "min_score", f"It scores {below}.", min_score=below)
    place = _place(case, spot)
    beyond = f"place {place}, {case.limit} asked for"
    step = candidate.mmr
    if step and step.place <= case.limit and case.changed((Change("search.mmr.enabled", False),)).spot().is_found:
        twin = f"{case.citation(step.nearest)} came first and is like it (similarity {step.similarity:.2f})"
        moved = f"from place {step.place} to {place}"
        return _describe(case, spot, "mmr", f"MMR put it back {moved}: {twin}.", mmr=f"{moved}: {twin}")
    if unaged and unaged.is_found:
        words = f"{describe_age(candidate)}: it is at place {place}, and would be hit {unaged.place} without decay."
        return _describe(case, spot, "decayed", words, decay=f"{beyond}; {unaged.place} without decay")
    words = f"Beyond the limit: it would be hit {place}, and {case.limit} are asked for."
    return _describe(case, spot, "limit", words, limit=beyond)


def _describe(case: Case, spot: Spot, verdict: Verdict, explanation: str, **details: str) -> Finding:
    """A finding about a candidate."""
    candidate = spot.candidate
    assert candidate  # noqa: S101 - a leg brought it
    legs = _legs(case, candidate)
    known = {
        "indexed": _lines(case),
        "candidates": describe_ranks(legs),
        "decay": f"{candidate.relevance:.2f} × {candidate.decay:.2f} = {candidate.score:.2f}",
        "min_score": f"{candidate.score:.2f} ≥ {case.min_score:g}" if case.min_score else "",
        "mmr": "" if case.settings.mmr.enabled else "off",
    }
    remedies = () if spot.is_found else find_remedies(case)
    return Finding(
        verdict,
        explanation,
        place=spot.place or _place(case, spot),
        chunk=_chunk(case, candidate),
        stages=stages_to(verdict, known | details),
        legs=legs,
        words=case.shared_words(),
        remedies=remedies,
        hint=None if remedies or spot.is_found else _TOO_FAR,
    )


def _place(case: Case, spot: Spot) -> int | None:
    """Among as many hits as can be had, else by its score."""
    wide = case.widened().spot()
    return wide.place if wide.is_found else spot.standing


def _legs(case: Case, candidate: Candidate | None) -> dict[str, LegRank | None]:
    running = [leg for leg, weight in case.settings.weights.items() if weight > 0]
    return {leg: candidate.legs.get(leg) if candidate else None for leg in running}


def _chunk(case: Case, candidate: Candidate | None) -> TargetChunk | None:
    own = case.target.chunk(candidate.chunk_id) if candidate else None
    return own or next(iter(case.target.chunks), None)


def _lines(case: Case) -> str:
    first, last = case.target.chunks[0].start_line, case.target.chunks[-1].end_line
    return f"lines {first}-{last}" + (", vectors pending" if case.missing_vectors() else "")
