"""How text is made comparable before keyword search, on both sides: the index and the query."""

from __future__ import annotations

import re
import unicodedata

import regex

# The index is rebuilt when this changes: FTS5 must be given the very text it indexed to forget a row.
FOLD_VERSION = f"5/{unicodedata.unidata_version}"

# Ideographs, kana, and the scripts of South-East Asia: written without spaces between words.
UNSPACED = (
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_HANGUL = "\uac00-\ud7af"  # written with spaces, but particles are glued to the words
_SIMPLE_WORDS = re.compile(rf"[{UNSPACED}]+|[{_HANGUL}]+|[^\W{UNSPACED}{_HANGUL}]+")
_MAY_BE_MARKS = re.compile("[\u0300-\u036f\u0483-\u0489\u0591-\u1dff\ua66f-\uabff\ufe00-\ufe2f\U00010000-\U0001efff]")
# A word begins with a letter, a digit or an underscore; marks follow, the vowels of Hindi, Bengali and Tamil.
_OF_WORD = rf"[^\W\p{{M}}\p{{Cf}}{UNSPACED}{_HANGUL}]"
_WORDS = regex.compile(rf"[{UNSPACED}]+|[{_HANGUL}]+|(?:{_OF_WORD}[\p{{Mn}}\p{{Mc}}]*+)++", regex.V1)
# Most leave out the points of Arabic and Hebrew, and few type what makes an Arabic word longer or its letters join.
# What follows an emoji is no part of a word.
_LEFT_OUT = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u200c\u200d\ufe00-\ufe0f]"
)
# Greek and Cyrillic letters without their accents, which move in Greek and are left out in Russian (ё). Of Latin ones
# FTS5 takes them off.
_BARE = {
    code: letter
    for first, last in ((0x370, 0x52F), (0x1F00, 0x1FFF))
    for code in range(first, last + 1)
    if (letter := unicodedata.normalize("NFD", chr(code))[0]) != chr(code)
}
_ACCENTED = re.compile(f"[{''.join(map(chr, _BARE))}]")
_RUN = re.compile(rf"[{UNSPACED}]")
_PAIRED = re.compile(rf"[{UNSPACED}{_HANGUL}]")


def fold(text: str) -> str:
    """Compatibility forms made one (full-width, half-width, ligatures) and case removed."""
    if text.isascii():
        folded = text.lower()
    else:  # removing case can take a letter and its accents apart, so the forms are made one again
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return folded.replace("\0", " ")


def bare(folded: str) -> str:
    """Without the accents of Greek and Cyrillic letters."""
    return folded.translate(_BARE) if not folded.isascii() and _ACCENTED.search(folded) else folded


def is_unspaced(word: str) -> bool:
    """Whether a word is of a script whose words are indexed in pairs of characters."""
    return _PAIRED.match(word) is not None


def is_paired(word: str) -> bool:
    """Whether a word is all letters of scripts whose words are indexed in pairs of characters."""
    return word.isalpha() and all(_PAIRED.match(character) for character in word)


def is_run(word: str) -> bool:
    """Whether a word is a run of a script that has no spaces: a clause, more likely than a word."""
    return _RUN.match(word) is not None


def split_runs(text: str) -> list[str]:
    """The words of a text, and the runs of scripts without spaces whole."""
    return _find_words(text)


def split_words(text: str) -> list[str]:
    """The words of a text; of runs without spaces, each pair of neighbours, so that what is not adjacent is found."""
    found: list[str] = []
    for word in _find_words(text):
        if is_unspaced(word) and len(word) > 1:
            found.extend(word[start : start + 2] for start in range(len(word) - 1))
        else:
            found.append(word)
    return found


def words(text: str) -> str:
    """A text as the word index is given it.

    The last character of a run stands for itself as well: any other is the first of a pair, so that a lone
    character is found as the beginning of an indexed word, wherever it stands.
    """
    found: list[str] = []
    for word in _find_words(text):
        if word.isascii():  # most are, and stand for themselves
            found.append(word)
            continue
        found.extend(split_words(word))
        if is_unspaced(word):
            found.append(word[-1])
    return " ".join(found)


def typed_words(text: str) -> dict[str, str]:
    """The words of a text, and how each is written in it."""
    return {word: written for written in _WORDS.findall(text) for word in split_words(written)}


def _find_words(text: str) -> list[str]:
    folded = bare(fold(text))
    if not _MAY_BE_MARKS.search(folded):  # most have none, and are split in a quarter of the time
        return _SIMPLE_WORDS.findall(folded)
    return _WORDS.findall(_LEFT_OUT.sub("", folded))
