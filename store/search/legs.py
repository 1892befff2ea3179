"""The keyword legs: each brings chunks in its own order, best first, from the documents that the query may see.

Beside its own score a chunk gets the share of what a perfect match would score. Shares are what legs can be compared
by: a chunk that has half of a query's weight in words, a passage halfway between chance and identity (``nearness``).
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest

import numpy as np

from memoryd.store.folding import fold, is_paired
from memoryd.store.search.answer import LegRank, Ranking
from memoryd.store.search.keyword_leg import Found, KeywordLeg, place_at
from memoryd.store.search.owners import stretches_of
from memoryd.store.search.postings import Chunks, Index, Postings, Scores, add_up
from memoryd.store.search.query import KeywordQuery, any_of
from memoryd.store.search.rarity import ANYHOW, Phrase, Written, count_phrases, perfect_score, telling_phrases
from memoryd.store.search.trigrams import (
    READ,
    Term,
    doubtful_terms,
    read_presence,
    read_terms,
    score_reading,
    true_parts,
)
from memoryd.store.search.visibility import Visible

# Places in chunks that a leg looks at, for all phrases together: some milliseconds of work each.
_MOST_WORDS = 4000
_MOST_TERMS = 2000

_MOST_READ = 1000  # chunks whose text is read for a term that is rarer than its trigrams
_FEW_DOCUMENTS = 64  # that are asked one by one which of their chunks have a common phrase
_ENOUGH = 200  # chunks of the newest part of the memory that a query may see; else it goes back
_FURTHER = 2, 4, 8, 16  # times as far
_SCANNED = 200  # and for a term that is too short for these, as a word and as a part of one
_MOST_TRIGRAMS = 100  # that begin with a term


def weigh_words(sql: sqlite3.Connection, query: KeywordQuery, written: Written = ANYHOW) -> dict[str, float]:
    """The words that the words leg goes by, those that no chunk has among them, and what each weighs."""
    phrases = count_phrases(Index(sql, "chunk_words"), query.word_phrases, _MOST_WORDS, written)
    telling = set(telling_phrases(phrases, _MOST_WORDS))
    return {word: phrase.weight for word, phrase in zip(query.words, phrases, strict=True) if phrase in telling}


def words_leg(
    sql: sqlite3.Connection, query: KeywordQuery, limit: int, visible: Visible, written: Written = ANYHOW
) -> KeywordLeg:
    """BM25 over the word index, phrase by phrase, for each has a weight of its own."""
    index = Index(sql, "chunk_words")
    phrases = telling_phrases(count_phrases(index, query.word_phrases, _MOST_WORDS, written), _MOST_WORDS)
    present = [phrase for phrase in phrases if phrase.having]
    if not present:
        return KeywordLeg({})
    if common := _are_common(present, _MOST_WORDS):
        newest = _newest(index, [phrase.text for phrase in present], _MOST_WORDS // 2, visible)
        found = add_up((each, phrase.weight) for each, phrase in zip(newest, present, strict=True))
    else:
        found = add_up((index.postings(phrase.text), phrase.correction) for phrase in present)
    found = _seen(sql, found, visible)
    best = _best(sql, _first(found, limit) if common else found, limit)
    return _leg(best, phrases, found, found.of)


def trigram_leg(
    sql: sqlite3.Connection, query: KeywordQuery, limit: int, visible: Visible, written: Written = ANYHOW
) -> KeywordLeg:
    """BM25 over the trigram index, and over the text of the best; a scan where every term is too short for it."""
    if not query.terms:
        return KeywordLeg(_scan(sql, query, limit, visible))
    index, asked = Index(sql, "chunks_fts"), query.phrases
    phrases = telling_phrases(count_phrases(index, asked, _MOST_TERMS, written), _MOST_TERMS)
    present = [phrase for phrase in phrases if phrase.having]
    if not present:
        return KeywordLeg({})
    if common := _are_common(present, _MOST_TERMS):
        having = _newest(index, [phrase.text for phrase in present], _MOST_TERMS // 3, visible)
    else:
        having = [read_presence(index, phrase.text) for phrase in present]
    texts = dict(zip(asked, query.terms, strict=True))
    terms = [Term(texts[phrase.text], phrase, each) for phrase, each in zip(present, having, strict=True)]
    terms = [term for term in terms if len(term.having.chunks)]
    if not terms:
        return KeywordLeg({})
    found = _seen(sql, add_up((term.having, term.phrase.weight) for term in terms), visible)
    most = max(limit, READ)
    best = [chunk for chunk, _ in _best(sql, _first(found, most) if common else found, most)]
    reading = read_terms(sql, best[:READ], terms)
    parts = true_parts(reading, terms)
    if doubtful := [term for term in doubtful_terms(parts, terms) if not _is_word(sql, term.text)]:
        # The few chunks that have it may be any of those that have its trigrams. Of a long question it matters less.
        alike = _seen(sql, add_up((term.having, 1.0) for term in doubtful), visible)
        more = [chunk for chunk, _ in _best(sql, alike, _MOST_READ // len(query.terms) ** 2)]
        known = set(reading.chunks)
        reading = reading.and_of(read_terms(sql, [chunk for chunk in more if chunk not in known], terms))
        parts = true_parts(reading, terms)
    scoring, counted = score_reading(index, reading, terms, parts)
    looked_at = np.array(list(dict.fromkeys([*reading.chunks, *best])), np.int64)
    scored = zip(looked_at.tolist(), scoring.of(looked_at).tolist(), strict=True)
    ranked = sorted((each for each in scored if each[1] > 0), key=lambda each: -each[1])  # of equals as they came
    absent = [phrase for phrase in phrases if not phrase.having]
    return _leg(ranked[:limit], [*absent, *counted], found, scoring.of)


def _is_word(sql: sqlite3.Connection, term: str) -> bool:
    """Whether the word index knows a term, and finds it wherever it stands as a word."""
    return Index(sql, "chunk_words").count(f'"{term.replace(chr(34), "")}"', 1) > 0


def _are_common(phrases: Sequence[Phrase], most: int) -> bool:
    return all(phrase.having > most for phrase in phrases)


def _leg(
    best: Iterable[tuple[int, float]],
    phrases: Sequence[Phrase],
    found: Postings,
    score: Callable[[Chunks], Scores],
) -> KeywordLeg:
    """``phrases``: all that could have scored; ``found``: all chunks that have any of them."""
    perfect = perfect_score(phrases)
    ranking = {chunk: place_at(rank, each, perfect) for rank, (chunk, each) in enumerate(best, start=1)}
    return KeywordLeg(ranking, Found(found, score, perfect, np.sort(found.scores)))


def _newest(index: Index, phrases: Sequence[str], most: int, visible: Visible) -> list[Postings]:
    """Of a question that has nothing but common phrases, those that each chunk has, in the newest part of the memory.

    It reaches as far back as all of them are known to stand or not; further, if little of that may be seen. Of a few
    documents it is all that they have. A phrase counts as if it stood once in a chunk of the usual length.
    """
    if visible.documents is not None and len(visible.documents) <= _FEW_DOCUMENTS:
        stretches = stretches_of(index.sql, visible.documents)
        return [_seen(index.sql, index.between(phrase, stretches), visible) for phrase in phrases]
    while True:
        newest = [index.newest(phrase, most) for phrase in phrases]
        since = max((int(each.chunks[0]) for each in newest if len(each.chunks) == most), default=0)
        seen = [_seen(index.sql, each.since(since), visible) for each in newest]
        found = max(len(each.chunks) for each in seen)
        if not since or visible.documents is None or found >= _ENOUGH:
            return seen
        most *= next(times for times in _FURTHER if times * found >= _ENOUGH or times == _FURTHER[-1])


def _seen(sql: sqlite3.Connection, found: Postings, visible: Visible) -> Postings:
    """The chunks that the query may see: not even a rank tells how many others there are."""
    if visible == Visible():
        return found
    seen = visible.those_of(sql, found.chunks)
    return Postings(found.chunks[seen], found.scores[seen])


def _first(found: Postings, limit: int) -> Postings:
    """What can be among the best of the newest chunks. Many are equals: of these the newest, and no key is read."""
    order = np.lexsort((-found.chunks, -found.scores))[:limit]
    return Postings(found.chunks[order], found.scores[order])


def _best(sql: sqlite3.Connection, found: Postings, limit: int) -> list[tuple[int, float]]:
    """The chunks with the highest scores, best first. Of equals the key decides, which no rebuild changes."""
    if not len(found.chunks):
        return []
    order = np.argsort(-found.scores, kind="stable")
    chunks, losses = found.chunks[order], -found.scores[order]
    end = int(np.searchsorted(losses, losses[min(limit, len(chunks)) - 1], side="right"))  # with all its equals
    loss = dict(zip(chunks[:end].tolist(), losses[:end].tolist(), strict=True))
    keys = _keys_of_equals(sql, loss)
    best = sorted((each, keys.get(chunk, ""), chunk) for chunk, each in loss.items())
    return [(chunk, -score) for score, _, chunk in best[:limit]]


def _keys_of_equals(sql: sqlite3.Connection, loss: Mapping[int, float]) -> dict[int, str]:
    shared = Counter(loss.values())
    equals = [chunk for chunk, each in loss.items() if shared[each] > 1]
    if not equals:
        return {}
    query = "SELECT c.id, c.key FROM json_each(?) wanted JOIN chunks c ON c.id = wanted.value"
    return dict(sql.execute(query, (json.dumps(equals),)).fetchall())


def _scan(sql: sqlite3.Connection, query: KeywordQuery, limit: int, visible: Visible) -> Ranking:
    """How often the terms occur in how much text: enough to rank by."""
    if not query.short:
        return {}
    rows = sql.execute(
        """
        SELECT c.id, c.key, t.heading, t.text FROM json_each(?) wanted
          JOIN chunks c ON c.id = wanted.value JOIN chunk_texts t ON t.id = c.id
        """,
        (json.dumps(_where_to_look(sql, query, visible)),),
    )
    found: list[tuple[float, str, int, float]] = []
    for chunk, key, heading, text in rows:
        folded = fold(f"{heading}\n{text}")
        if times := sum(map(folded.count, query.short)):
            having = sum(term in folded for term in query.short) / len(query.short)
            found.append((-times * 100.0 / (100 + len(folded)), key, chunk, having))
    best = nsmallest(limit, found)
    return {
        chunk: LegRank(rank, -score, having * -score / (1 - score))
        for rank, (score, _, chunk, having) in enumerate(best, start=1)
    }


def _where_to_look(sql: sqlite3.Connection, query: KeywordQuery, visible: Visible) -> list[int]:
    """The chunks that have the query's short terms foremost: as words, of which the word index knows every character of
    scripts that it has in pairs; else also as the beginning of a trigram, the newest."""
    told = dict.fromkeys(words_leg(sql, query, _SCANNED, visible).ranking)
    index = Index(sql, "chunks_fts")
    for term in query.short:
        if is_paired(term) or (len(term) == 1 and term.isalnum()):  # a letter is in nearly every word
            continue
        if trigrams := index.terms_beginning(term, _MOST_TRIGRAMS):
            (newest,) = _newest(index, [any_of(trigrams)], _SCANNED, visible)
            told |= dict.fromkeys(newest.chunks.tolist())
    return list(told)
