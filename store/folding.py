"""How text is made comparable before keyword search, on both sides: the index and the query."""

from __future__ import annotations

import unicodedata

# The index is rebuilt when this changes: FTS5 must be given the very text it indexed to forget a row.
FOLD_VERSION = f"2/{unicodedata.unidata_version}"


def fold(text: str) -> str:
    """Compatibility forms made one (full-width, half-width, ligatures) and case removed."""
    if text.isascii():
        folded = text.lower()
    else:  # removing case can take a letter and its accents apart, so the forms are made one again
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return folded.replace("\0", " ")
