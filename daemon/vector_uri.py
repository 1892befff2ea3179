"""Which addresses the vectors can be kept at. Small, for every command reads the configuration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

SCHEMES: Final = ("s3", "gs", "az")
ALLOWED: Final = 'a folder, or s3://, gs:// or az:// with a bucket, such as "s3://bucket/memory"'


def is_folder(uri: str) -> bool:
    return "://" not in uri


def uri_problems(uri: str) -> Iterable[str]:
    """What is wrong with an address, without showing it where it may hold a key."""
    if is_folder(uri):
        return
    scheme, _, rest = uri.partition("://")
    if scheme == "db":
        # Its tables cannot be read whole (``to_arrow``), which filling the mirror and proving it both need.
        yield f"found db://: LanceDB Cloud does not give out whole tables, which memoryd needs; allowed: {ALLOWED}"
    elif scheme not in SCHEMES:
        yield f'found "{scheme[:20]}://"; allowed: {ALLOWED}'
    elif "@" in rest or "?" in rest or "#" in rest:
        yield f"found an address with a user, a key or a ? in it; allowed: {ALLOWED}, keys in store.storage_options"
    elif not rest.strip("/") or not rest.isprintable() or " " in rest or ".." in rest.split("/"):
        yield f"found an address without a bucket; allowed: {ALLOWED}"
