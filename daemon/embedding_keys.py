"""Where the key of an embedding service is looked for. Small, for every command reads the configuration.

A key that memoryd was given for itself (a variable, a file or a credential of its name) may be used by ``auto``. The
variable that a service's own programs use, OPENAI_API_KEY and its like, counts only where the service is named in the
configuration: it is set on many machines for something else, and notes must not leave the machine because of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from memoryd.daemon.config import Embedder
from memoryd.jobs.keys import KeyPlace

KEYED: Final = ("openai", "gemini", "voyage", "mistral")  # in the order in which `auto` looks
KEY_VARIABLES: Final = tuple(f"MEMORYD_{name.upper()}_API_KEY{suffix}" for name in KEYED for suffix in ("", "_FILE"))


def own_places(provider: str, environ: Mapping[str, str]) -> Iterator[KeyPlace]:
    """The places that are memoryd's alone."""
    if provider not in KEYED:
        return
    variable = f"MEMORYD_{provider.upper()}_API_KEY"
    if environ.get(variable):
        yield KeyPlace("embedder", provider, variable=variable)
    if file := environ.get(f"{variable}_FILE"):
        yield KeyPlace("embedder", provider, file=file)
    if environ.get("CREDENTIALS_DIRECTORY"):
        yield KeyPlace("embedder", provider, credential=f"{provider}_api_key")


def find_own_key(provider: str, environ: Mapping[str, str]) -> KeyPlace | None:
    return next((place for place in own_places(provider, environ) if place.holds_key(environ)), None)


def key_place(settings: Embedder, usual: tuple[str, ...], environ: Mapping[str, str]) -> KeyPlace | None:
    """Where the key of the service that the settings name is; None where there is none anywhere."""
    configured = KeyPlace(
        "embedder",
        settings.provider,
        variable=settings.api_key_env,
        file=settings.api_key_file,
        credential=settings.api_key_credential,
    )
    if configured.is_named:
        return configured
    if found := find_own_key(settings.provider, environ):
        return found
    variable = next((name for name in usual if environ.get(name)), None)
    return KeyPlace("embedder", settings.provider, variable=variable) if variable else None
