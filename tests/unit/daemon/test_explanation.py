"""How an answer came about, in lines of text."""

from __future__ import annotations

from typing import Any

import pytest

from memoryd.daemon.commands.explanation import bar, explain_answer, explain_hit

HIT: dict[str, Any] = {
    "id": "b",
    "score": 0.62,
    "scope": "user:ana",
    "merged": ["c"],
    "explain": {
        "legs": {
            "words": {"rank": 12, "score": 4.5, "share": 0.5},
            "vector": {"rank": 1, "score": 0.71, "share": 0.42},
        },
        "fused": 0.47,
        "relevance": 0.65,
        "decay": 0.954,
        "age_days": 7,
        "mmr": {"place": 1, "similarity": 0.83, "nearest": "a"},
    },
}
ANSWER: dict[str, Any] = {
    "weights": {"words": {"prior": 1.0, "noise": 0.16, "best": 0.5, "value": 0.71, "standout": 0.4}},
    "candidates": {"words": 1031},
    "timings_ms": {"words": 1.25, "rank": 2.0},
    "filters": {
        "on": {"scope": "user:ana", "source": ["memory"], "include_superseded": True},
        "documents": 3,
        "of": None,
    },
    "lost": {"limit": 94, "duplicate": 1},
    "took_ms": 12.3,
}


def test_each_leg_has_a_line_and_the_columns_stand_below_each_other() -> None:
    words, vector, total, remarks = explain_hit(HIT, [{"id": "a"}, HIT])
    assert words == "words     #12  █████       0.50   bm25 4.50"
    assert vector == "vector     #1  ████▎       0.42   cosine 0.71"
    assert total == "fused 0.47 → relevance 0.65 × decay 0.95 (7 days old) = 0.62"
    assert remarks == (
        "MMR: place 1 by its score, like hit 1 (0.83); with the lines of 1 overlapping chunk; scope user:ana"
    )


def test_best_passage_is_told_with_its_lines_and_its_part_of_the_score() -> None:
    explain = {**HIT["explain"], "passage": {"share": 0.55, "part": 0.3}}
    hit = {**HIT, "best": {"start_line": 12, "end_line": 14}, "explain": explain}
    _, _, passage, *_ = explain_hit(hit, [hit])
    assert passage == "passage        █████▌      0.55   the best by words and meaning: lines 12-14 (30% of fused)"


@pytest.mark.parametrize(
    ("away", "told"),
    [(0, "one of the days named"), (1, "1 day after the days named"), (-3, "3 days before the days named")],
)
def test_distance_from_the_days_named_stands_in_place_of_the_age(away: int, told: str) -> None:
    for without, lifted in ((0.55, ", without that 0.55"), (0.65, "")):
        explain = {**HIT["explain"], "named_days": {"days_away": away, "relevance": without}}
        *_, total, _ = explain_hit({**HIT, "explain": explain}, [HIT])
        assert total == f"fused 0.47 → relevance 0.65 × decay 0.95 ({told}{lifted}) = 0.62"


def test_plain_hit_has_no_remarks() -> None:
    plain = {**HIT, "scope": "global", "merged": [], "explain": {**HIT["explain"], "age_days": None}}
    del plain["explain"]["mmr"]
    *_, total = explain_hit(plain, [plain])
    assert "(evergreen)" in total


def test_answer_tells_weights_filters_losses_and_time() -> None:
    head, words, filters, left_out, embedding, time = explain_answer({**ANSWER, "embedding": "cached"})
    assert embedding == "embedding cached"
    assert words == "words      1.00 → 0.71   0.16   0.50   0.40    1,031    1.2 ms"
    assert len(head) == len(words)
    assert filters == "filters   scope user:ana; source memory; include_superseded · 3 documents"
    assert left_out == "left out  94 beyond the limit, 1 said by another already"
    assert time == "time      12.3 ms in all, rank 2.0"


@pytest.mark.parametrize(
    ("share", "drawn"), [(0, " " * 10), (1, "█" * 10), (2, "█" * 10), (0.0125, "▏" + " " * 9), (0.55, "█████▌    ")]
)
def test_bar_is_as_long_as_its_share(share: float, drawn: str) -> None:
    assert bar(share) == drawn
