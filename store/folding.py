"""How text is made comparable before keyword search, on both sides: the index and the query."""

from __future__ import annotations

import unicodedata

# The index is rebuilt when this changes: FTS5 must be given the very text it indexed to forget a row.
FOLD_VERSION = f"1/{unicodedata.unidata_version}"


def fold(text: str) -> str:
    """Compatibility forms made one (full-width, half-width, ligatures) and case removed."""
    return unicodedata.normalize("NFKC", text).casefold().replace("\0", " ")
