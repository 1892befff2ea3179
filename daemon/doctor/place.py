"""Where the vectors are kept: if far away, whether the keys are there and the bucket answers. It is asked, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memoryd.daemon.config import Config
from memoryd.daemon.doctor.finding import Finding, ok, problem, warning
from memoryd.daemon.vector_uri import is_folder
from memoryd.jobs.storage_options import parse_option, read_options
from memoryd.store.errors import MemorydError


@dataclass(frozen=True, slots=True)
class PlaceFacts:
    uri: str  # empty: in the data folder
    error: str | None = None  # why it cannot be used
    fix: str | None = None
    in_the_clear: bool = False  # whether keys and vectors are sent to another machine without TLS


def gather_place(config: Config, environ: Mapping[str, str]) -> PlaceFacts:
    store = config.store
    if is_folder(store.vectors_uri):
        return PlaceFacts(store.vectors_uri)
    from memoryd.store.lance import known_fingerprints
    from memoryd.store.place import VectorPlace

    options = {option.name.lower(): option.value for option in map(parse_option, store.storage_options)}
    endpoint = next((value for name, value in options.items() if name.endswith(("endpoint", "endpoint_url"))), "")
    place = VectorPlace(store.vectors_uri, lambda: read_options(store.storage_options, environ))
    try:
        known_fingerprints(place)
    except MemorydError as error:
        return PlaceFacts(store.vectors_uri, error.message, error.hint)
    return PlaceFacts(store.vectors_uri, in_the_clear=endpoint.startswith("http://") and not _is_here(endpoint))


def check_place(facts: PlaceFacts) -> Finding:
    if is_folder(facts.uri):
        return ok("vectors", f"on this machine, in {facts.uri or 'the data folder'}")
    if facts.error:
        fix = facts.fix or "Correct store.vectors_uri and store.storage_options"
        return problem("vectors", f"{facts.error} (as seen from this shell)", fix)
    if facts.in_the_clear:
        return warning("vectors", f"keys and vectors go to {facts.uri} in the clear", "Use an https:// endpoint")
    return ok("vectors", f"kept in {facts.uri}, which answers; text, paths and queries stay on this machine")


def _is_here(endpoint: str) -> bool:
    host = endpoint.removeprefix("http://").partition("/")[0].rpartition(":")[0].strip("[]")
    return host in ("127.0.0.1", "localhost", "::1")
