"""The words of a query that stand nowhere in the memory."""

from __future__ import annotations

import sqlite3

from memoryd.store.folding import is_unspaced
from memoryd.store.search.postings import Index
from memoryd.store.search.query import KeywordQuery, build_query
from memoryd.store.search.trigrams import read_texts
from memoryd.store.search.visibility import Visible

_COMMON = 1000  # chunks: a phrase of so many tells nothing either way
_READ = 50  # chunks that have a word's trigrams; where there are more, one is taken to have the word


def unknown_words(sql: sqlite3.Connection, query: KeywordQuery) -> list[str]:
    """The query's words that no chunk has. Of scripts without spaces none: what is asked for there are pairs."""
    index = Index(sql, "chunk_words")
    asked = zip(query.words, query.word_phrases, strict=True)
    return [word for word, text in asked if not is_unspaced(word) and not index.count(text, 1)]


def missing_words(sql: sqlite3.Connection, query: KeywordQuery, visible: Visible) -> list[str]:
    """The query's words that nothing has that it may see, not even as a part of another word."""
    words, parts = Index(sql, "chunk_words"), Index(sql, "chunks_fts")
    asked = zip(query.words, query.word_phrases, strict=True)
    telling = ((word, text) for word, text in asked if len(word) > 1 and not is_unspaced(word))
    lacking = [word for word, text in telling if not _stands(words, text, visible)]
    return [word for word in lacking if not _stands_in_part(parts, build_query(word), visible)]


def _stands(index: Index, phrase: str, visible: Visible) -> bool:
    """Whether a chunk that may be seen has the phrase: what others have to say is not told by what is known."""
    if visible == Visible():
        return index.count(phrase, 1) > 0
    if index.count(phrase, _COMMON) >= _COMMON:
        return True
    return bool(visible.those_of(index.sql, index.chunks_with(phrase, _COMMON)).any())


def _stands_in_part(index: Index, word: KeywordQuery, visible: Visible) -> bool:
    """A chunk may have all of a word's trigrams without the word ("blo", "loo", "ood" in blocks, floor and good), so
    its text is read."""
    most = _READ if visible == Visible() else _COMMON
    for term, phrase in zip(word.terms, word.phrases, strict=True):
        if index.count(phrase, most + 1) > most:
            return True
        chunks = index.chunks_with(phrase, most)
        seen = chunks[visible.those_of(index.sql, chunks)].tolist()
        if len(seen) > _READ or any(term in text for text in read_texts(index.sql, seen).values()):
            return True
    return False
