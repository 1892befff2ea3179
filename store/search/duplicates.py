"""The same text is answered once, wherever else it stands."""

from __future__ import annotations

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
    seen: dict[str, int] = {}
    for candidate in candidates:
        same = seen.setdefault(texts[candidate.chunk_id].casefold().strip(), candidate.chunk_id)
        if same == candidate.chunk_id:
            kept.append(candidate)
        else:
            lost.append(Lost(candidate, "duplicate", same))
    return kept, lost
