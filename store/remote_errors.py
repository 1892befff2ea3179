"""What a store far away says when it fails, in words that hold no key, with the remedy.

Its own words hold addresses, signatures and answers of servers: none of that is passed on.
"""

from __future__ import annotations

import re

from memoryd.store.errors import MemorydError, StoreCorrupt, VectorsAway
from memoryd.store.place import VectorPlace

ANEW = "memoryd leaves the table as it is and fills another one from the embedding cache"
_SETTINGS = "store.vectors_uri and store.storage_options"
_LATER = "memoryd tries again by itself; what is new is found by its words meanwhile"

# The first that is found counts: words of the error, lower case -> what is wrong, the remedy, whether it lasts.
_KNOWN: tuple[tuple[tuple[str, ...], str, str, bool], ...] = (
    (
        ("nosuchbucket", "bucket does not exist", "containernotfound"),
        "there is no such bucket",
        f"Create it, or correct {_SETTINGS}",
        True,
    ),
    (
        (
            "invalidaccesskeyid",
            "signaturedoesnotmatch",
            "invalidclienttokenid",
            "expiredtoken",
            "401 unauthorized",
            "status: 401",
        ),
        "the key is not accepted",
        "Correct the keys that store.storage_options names; they are read again at each try",
        True,
    ),
    (
        ("accessdenied", "403 forbidden", "status: 403", "permissiondenied", "unauthenticated"),
        "the key may not do this",
        "Allow it to list, read, write and delete below that address, or name other keys in store.storage_options",
        True,
    ),
    (
        ("credential", "missing region", "no region"),
        "there is no key to ask it with",
        "Name the keys in store.storage_options",
        True,
    ),
    (
        ("commit conflict", "concurrent writers", "preempted by concurrent"),
        "somebody else writes to the same table",
        "Give each memoryd a store.vectors_uri of its own",
        False,
    ),
    (
        ("503 service", "status: 503", "slowdown", "429 too many", "status: 429"),
        "it asks to be left alone for now",
        _LATER,
        False,
    ),
    (("500 internal", "502 bad", "504 gateway", "status: 5"), "its server fails", _LATER, False),
    (
        ("error sending request", "timed out", "connection", "dns error", "error decoding response body", "retryerror"),
        "it cannot be reached, or does not answer in time",
        _LATER,
        False,
    ),
)
_DAMAGE = ("not found", "orrupt", "invalid", "panic", "schema", "lanceerror", "was not found")


def translate_remote(error: BaseException, place: VectorPlace, table_words: str) -> MemorydError:
    """What an exception of LanceDB means where the tables are far away."""
    words = str(error).lower()
    for signs, what, hint, lasting in _KNOWN:
        if any(sign in words for sign in signs):
            return VectorsAway(f"The vectors are away: {place}: {what}", hint=hint, lasting=lasting)
    if any(sign in words for sign in _DAMAGE):
        return StoreCorrupt(
            f"The vector store is damaged: {table_words}: {_kind(error)}",
            hint=ANEW,
        )
    return VectorsAway(f"The vectors are away: {place}: {_kind(error)}", hint=_LATER)


def _kind(error: BaseException) -> str:
    """The sort of failure that LanceDB names, without its addresses."""
    words = str(error)
    if "ot found" in words:
        return "a file is not there"
    named = re.search(r"LanceError\((\w+)\)", words)
    return f"LanceDB failed ({named[1] if named else type(error).__name__})"
