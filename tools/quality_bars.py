"""What the search is held to, and the settings that are measured beside the default."""

from __future__ import annotations

from dataclasses import dataclass, replace

from quality_units import LOW_OVERLAP

from memoryd.store.search.request import Mmr, SearchSettings

FULL = "full"  # the default settings
PLAIN_RRF = "plain RRF"
DECAY_OFF = "decay off"
LEG_TOLERANCE = 0.005  # hit@6 that the whole may have less than its best leg
DECAY_TOLERANCE = 0.01  # hit@6 that decay may cost


@dataclass(frozen=True, slots=True)
class Bar:
    bench: str
    measure: str
    least: float
    kind: str = ""  # of queries; empty: all


BARS = (
    Bar("locomo-merged", "line.hit@1", 0.65),
    Bar("locomo-merged", "line.hit@6", 0.92),
    Bar("locomo-merged", "line.hit@10", 0.955),
    Bar("locomo", "line.hit@6", 0.925),
    Bar("locomo", "line.hit@6", 0.80, LOW_OVERLAP),
    Bar("longmemeval-head500", "line.hit@6", 0.93),
    Bar("scifact", "doc.ndcg@10", 0.80),
    Bar("scifact", "line.hit@6", 0.70, LOW_OVERLAP),
    Bar("cranfield", "doc.ndcg@10", 0.42),
    Bar("zh-cmrc2018", "line.hit@6", 0.97),
    Bar("zh-drcd", "line.hit@6", 0.985),
    Bar("ja-jaquad", "line.hit@6", 0.985),
    Bar("mixed", "line.hit@6", 0.975),
    Bar("cjk-short", "line.hit@6", 0.98),
)


def variants(default: SearchSettings) -> dict[str, SearchSettings]:
    """The default, and what is left of it when parts are taken away or others added, by name; the default first.

    A leg alone and plain RRF stand for themselves, so without decay and never silent; the others differ from the
    default in the one thing that they are named for.
    """
    off = replace(default.decay, strength=0.0)
    undated = replace(default, decay=off, named_days=replace(default.named_days, strength=0.0), abstain=0.0)
    legs = {
        leg: replace(undated, weights={name: float(name == leg) for name in default.weights}) for leg in default.weights
    }
    return {
        FULL: default,
        **legs,
        PLAIN_RRF: replace(undated, fusion="rrf", adaptive=False),
        "adaptive RRF": replace(default, fusion="rrf", adaptive=True),
        "weighted, not adaptive": replace(default, fusion="weighted", adaptive=False),
        "concentration off": replace(default, concentration=0.0),
        DECAY_OFF: replace(default, decay=off),
        "named days off": replace(default, named_days=replace(default.named_days, strength=0.0)),
        "never silent": replace(default, abstain=0.0),
        "with MMR": replace(default, mmr=Mmr(enabled=True)),
    }
