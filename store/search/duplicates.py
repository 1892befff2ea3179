"""The same text is answered once, wherever else it stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from memoryd.store.search.answer import Candidate, Lost

_MEANING = {"vector"}


def put_words_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Best first; of equals those that a keyword leg brought, for they can show the words that were asked for.

    What was put before an older one stays there.
    """
    return sorted(candidates, key=lambda candidate: (-candidate.score, not candidate.newer and _is_wordless(candidate)))


def _is_wordless(candidate: Candidate) -> bool:
    return candidate.legs.keys() == _MEANING


def drop_duplicates(candidates: Sequence[Candidate], texts: Mapping[int, str]) -> tuple[list[Candidate], list[Lost]]:
    """Of candidates that say the same but for case, the first. ``texts`` is by chunk id."""
    kept: list[Candidate] = []
    lost: list[Lost] = []
    stripped = {candidate.chunk_id: texts[candidate.chunk_id].strip() for candidate in candidates}
    shapes = {chunk: _shape(text) for chunk, text in stripped.items()}
    times = Counter(shapes.values())
    seen: dict[str, int] = {}
    for candidate in candidates:
        chunk = candidate.chunk_id
        if times[shapes[chunk]] == 1:  # no other can be the same: taking the case from a text that is not ASCII costs
            kept.append(candidate)
            continue
        same = seen.setdefault(stripped[chunk].casefold(), chunk)
        if same == chunk:
            kept.append(candidate)
        else:
            lost.append(Lost(candidate, "duplicate", same))
    return kept, lost


def _shape(text: str) -> tuple[int, int]:
    """What is the same of two texts that differ in case alone."""
    return text.count(" "), text.count("\n")
