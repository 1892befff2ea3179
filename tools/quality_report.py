"""The figures as tables of docs/quality.md, between two marks; the words around them are written by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from quality_bars import DECAY_TOLERANCE, FULL, LEG_TOLERANCE, LOW_OVERLAP

BEGIN, END = "<!-- begin: written by make quality -->", "<!-- end: written by make quality -->"
MEASURES = ("line.hit@1", "line.hit@5", "line.hit@6", "line.hit@10", "line.recall@10", "line.mrr@10", "line.ndcg@10")
SLICES = {"~overlap-1-low": "few words shared", "~overlap-2-mid": "some", "~overlap-3-high": "most"}


def replace_tables(document: str, result: dict[str, Any]) -> str:
    """The document with the tables of this run. Raises ``ValueError`` where it has no place for them."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the marks {BEGIN} and {END} are missing")
    return f"{before}{BEGIN}\n\n{tables(result)}\n{END}{after}"


def tables(result: dict[str, Any]) -> str:
    benches = result["benches"]
    sections = {
        "The bars": _bars(result["bars"]),
        "Everything at the default settings": _default(benches),
        "What each part is worth: hit@6": _variants(benches) if _has_variants(benches) else "",
        "Silence and doubt: the part of the answers that are empty, or called doubtful": _silence(benches),
        "By words shared between question and answer: hit@6": _slices(benches),
        "Few words shared: hit@6 of each part": _low_overlap(benches) if _has_variants(benches) else "",
    }
    return "\n".join(f"### {title}\n\n{table}" for title, table in sections.items() if table)


def _bars(bars: Sequence[dict[str, Any]]) -> str:
    head = ("set", "measure", "queries", "bar", "measured", "95 % interval", "")
    return _table(
        head,
        (
            (
                bar["bench"],
                _name(bar["measure"]) + (f", {SLICES[bar['kind']]}" if bar["kind"] else ""),
                bar["queries"],
                f"{bar['least']:.3f}",
                f"**{bar['measured']:.3f}**",
                _interval(bar["ci95"]),
                "pass" if bar["passed"] else "miss",
            )
            for bar in bars
        ),
    )


def _default(benches: dict[str, Any]) -> str:
    head = ("set", "queries", *map(_name, MEASURES), "document nDCG@10", "lines a hit", "search ÷ query embedding")
    return _table(
        head,
        (
            (
                name,
                bench["queries"],
                *(f"{bench[measure]:.3f}" for measure in (*MEASURES, "doc.ndcg@10")),
                f"{bench['lines_per_result']:.1f}",
                "" if bench["search_per_embedding"] is None else f"{bench['search_per_embedding']:.1f}",
            )
            for name, bench in benches.items()
        ),
    )


def _variants(benches: dict[str, Any]) -> str:
    names = list(next(iter(benches.values()))["variants"])
    head = ("set", *(f"**{name}**" if name == FULL else name for name in names), "full − best leg", "full − decay off")
    return _table(
        head,
        (
            (
                name,
                *(f"{bench['variants'][variant]['line.hit@6']:.3f}" for variant in names),
                _held(bench["beside_best_leg"]["difference"], LEG_TOLERANCE),
                _held(bench["beside_decay_off"]["difference"], DECAY_TOLERANCE),
            )
            for name, bench in benches.items()
        ),
    )


def _has_variants(benches: dict[str, Any]) -> bool:
    return any(len(bench["variants"]) > 1 for bench in benches.values())


def _slices(benches: dict[str, Any]) -> str:
    def cell(bench: dict[str, Any], kind: str) -> str:
        row = bench["by_type"].get(kind)
        return f"{row['line.hit@6']:.3f} of {row['queries']}" if row else ""

    return _table(
        ("set", *SLICES.values()), ((name, *(cell(bench, kind) for kind in SLICES)) for name, bench in benches.items())
    )


def _low_overlap(benches: dict[str, Any]) -> str:
    names = list(next(iter(benches.values()))["variants"])
    rows = {name: [bench["variants"][each].get(LOW_OVERLAP) for each in names] for name, bench in benches.items()}
    head = ("set", *(f"**{name}**" if name == FULL else name for name in names))
    return _table(head, ((name, *(f"{each:.3f}" for each in row)) for name, row in rows.items() if None not in row))


def _silence(benches: dict[str, Any]) -> str:
    of_own, of_strange = "of its own questions", "of another set's, which it cannot answer"
    head = ("set", f"{of_own}: empty", "doubted", f"{of_strange}: empty", "doubted", "asked")
    measures = ("own", "own_doubted", "strange", "strange_doubted")
    rows = {name: bench["silence"] for name, bench in benches.items()}
    return _table(
        head,
        (
            (name, *(f"{row[measure]:.3f}" for measure in measures), row["strangers"])
            for name, row in rows.items()
            if row["strangers"]
        ),
    )


def _held(difference: float, tolerance: float) -> str:
    return f"{difference:+.3f} {'pass' if difference >= -tolerance else 'miss'}"


def _name(measure: str) -> str:
    level, _, name = measure.partition(".")
    name = name.replace("ndcg", "nDCG").replace("mrr", "MRR")
    return f"document {name}" if level == "doc" else name


def _interval(bounds: Sequence[float]) -> str:
    return f"{bounds[0]:.3f} to {bounds[1]:.3f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"
