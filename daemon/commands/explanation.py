"""How an answer came about, in lines of text: beside each hit its scores, below all of them what holds for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memoryd.daemon.commands.output import plural

_BAR = 10  # characters
_EIGHTHS = " ▏▎▍▌▋▊▉"
_MEASURES = {"words": "bm25", "trigram": "bm25", "vector": "cosine"}
_LEFT_OUT = {
    "abstain": "too little to go by",
    "limit": "beyond the limit",
    "min_score": "below min_score",
    "duplicate": "said by another already",
    "neighbour": "joined to a hit",
}


def explain_hit(hit: dict[str, Any], hits: Sequence[dict[str, Any]]) -> list[str]:
    """A line for each leg, then how they were made one score, then what else happened to the hit."""
    explain = hit["explain"]
    lines = [_leg(leg, place) for leg, place in explain["legs"].items()]
    if "passage" in explain:
        lines.append(_passage(explain["passage"], hit))
    own_score = explain.get("newer", {}).get("own_score", hit["score"])
    lines.append(
        f"fused {explain['fused']:.2f} → relevance {explain['relevance']:.2f} × decay {explain['decay']:.2f}"
        f" ({_age(explain)}) = {own_score:.2f}"
    )
    if "rerank" in explain:
        lines.insert(-1, _rerank(explain["rerank"]))
    remarks = [_newer(explain["newer"], hit, hits)] if "newer" in explain else []
    if "mmr" in explain:
        remarks.append(_mmr(explain["mmr"], hits))
    if hit["merged"]:
        remarks.append(f"with the lines of {plural(len(hit['merged']), 'overlapping chunk')}")
    if hit["scope"] != "global":
        remarks.append(f"scope {hit['scope']}")
    return [*lines, "; ".join(remarks)] if remarks else lines


def explain_answer(answer: dict[str, Any]) -> list[str]:
    """What each leg counted and where it found something, which filters were on, what was left out, and the time."""
    head = f"{'leg':<9} {'weight':>12}  {'noise':>5}  {'best':>5}  {'apart':>5}  {'found':>7}  {'time':>8}"
    lines = [head]
    times = dict(answer["timings_ms"])
    for leg, weight in answer["weights"].items():
        change = f"{weight['prior']:.2f} → {weight['value']:.2f}"
        lines.append(
            f"{leg:<9} {change:>12}  {weight['noise']:>5.2f}  {weight['best']:>5.2f}"
            f"  {weight['standout']:>5.2f}  {answer['candidates'].get(leg, 0):>7,}  {times.pop(leg, 0):>5.1f} ms"
        )
    lines.append(f"{'filters':<9} {_filters(answer['filters'])}")
    if answer["lost"]:
        left_out = [f"{count:,} {_LEFT_OUT[stage]}" for stage, count in answer["lost"].items()]
        lines.append(f"{'left out':<9} {', '.join(left_out)}")
    if embedding := answer.get("embedding"):
        lines.append(f"{'embedding':<9} {embedding}")
    rest = "".join(f", {stage} {ms:.1f}" for stage, ms in times.items())
    return [*lines, f"{'time':<9} {answer['took_ms']:.1f} ms in all{rest}"]


def _leg(leg: str, place: dict[str, Any]) -> str:
    rank = f"#{place['rank']}"
    return (
        f"{leg:<8} {rank:>4}  {bar(place['share'])}  {place['share']:.2f}"
        f"   {_MEASURES.get(leg, 'score')} {place['score']:.2f}"
    )


def _passage(best: dict[str, Any], hit: dict[str, Any]) -> str:
    lines = f"{hit['best']['start_line']}-{hit['best']['end_line']}"
    where = "" if "rerank" in hit["explain"] else f": lines {lines}"  # else those are what the reranker found
    return (
        f"{'passage':<8} {'':>4}  {bar(best['share'])}  {best['share']:.2f}"
        f"   the best by words and meaning{where} ({best['part']:.0%} of fused)"
    )


def bar(share: float) -> str:
    """A share as a bar of fixed width, to an eighth of a character."""
    eighths = round(max(0.0, min(1.0, share)) * _BAR * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(_BAR)


def _age(explain: dict[str, Any]) -> str:
    if explain["age_days"] is None:
        return "evergreen"
    if "named_days" not in explain:
        return f"{plural(explain['age_days'], 'day')} old"
    away, without = explain["named_days"]["days_away"], explain["named_days"]["relevance"]
    where = f"{plural(abs(away), 'day')} {'after' if away > 0 else 'before'}" if away else "one of"
    lifted = f", without that {without:.2f}" if round(without, 2) < round(explain["relevance"], 2) else ""
    return f"{where} the days named{lifted}"


def _newer(step: dict[str, Any], hit: dict[str, Any], hits: Sequence[dict[str, Any]]) -> str:
    return f"newer than {_name(step['than'], hits) or 'a chunk'} that says alike things: {hit['score']:.2f}"


def _name(identity: str | None, hits: Sequence[dict[str, Any]]) -> str | None:
    return next((f"hit {number}" for number, hit in enumerate(hits, start=1) if hit["id"] == identity), None)


def _mmr(step: dict[str, Any], hits: Sequence[dict[str, Any]]) -> str:
    like = _name(step["nearest"], hits) or "a chunk before it"
    return f"MMR: place {step['place']} by its score, like {like} ({step['similarity']:.2f})"


def _rerank(step: dict[str, Any]) -> str:
    return (
        f"{'reranker':<8} {'':>4}  {bar(step['confidence'])}  {step['confidence']:.2f}"
        f"   score {step['score']:.2f}, place {step['place']} with relevance {step['relevance']:.2f} before"
    )


def _filters(filters: dict[str, Any]) -> str:
    on = [
        name if value is True else f"{name} {', '.join(value) if isinstance(value, list) else value}"
        for name, value in filters["on"].items()
    ]
    left = (
        f"{filters['documents']:,} of {plural(filters['of'], 'document')}"
        if filters["of"]
        else (plural(filters["documents"], "document"))
    )
    return f"{'; '.join(on) or 'none'} · {left}"
