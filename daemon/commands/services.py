"""The embedding services as ``memoryd model`` shows and chooses them. Whether there is a key is told, never the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memoryd.daemon.commands.output import console, say
from memoryd.store.errors import ConfigInvalid, InvalidParams

if TYPE_CHECKING:
    from memoryd.daemon.config import Embedder


def choose_embedder(settings: Embedder, spec: str, base_url: str | None = None) -> Embedder:
    """The settings with what a person asked for: a service, as openai or openai:MODEL, none, or a local model."""
    chosen = _choose(settings, spec)
    if base_url is None:
        return chosen
    if chosen.provider in ("auto", "local", "none"):
        raise InvalidParams(f"{spec} is asked nowhere", hint="Leave out --base-url, or name a service: openai:MODEL")
    return replace(chosen, base_url=base_url)


def _choose(settings: Embedder, spec: str) -> Embedder:
    from memoryd.daemon.configured_models import choose_provider
    from memoryd.jobs.embedders.providers import PROVIDERS
    from memoryd.jobs.models.catalogue import resolve

    name, _, model = spec.partition(":")
    if spec == "none":
        return choose_provider(settings, "none")
    if name in PROVIDERS:
        service = PROVIDERS[name]
        wanted = model or service.model or (settings.model if name == settings.provider else "")
        if not wanted:
            raise InvalidParams(f"{name} has no model of its own", hint=f"Name it: memoryd model use {name}:MODEL")
        return replace(choose_provider(settings, name), model=wanted)
    try:
        resolve(spec)
    except ConfigInvalid:
        if settings.provider not in PROVIDERS:
            raise
        return replace(settings, model=spec)  # another model of the same service
    local = settings.provider if settings.provider in ("auto", "local") else "local"
    return replace(choose_provider(settings, local), model=spec)


def check_service(settings: Embedder, environ: Mapping[str, str]) -> None:
    """Raise ``InvalidParams`` where a service is chosen that cannot be asked yet."""
    from memoryd.daemon.configured_models import service_of
    from memoryd.daemon.embedding_keys import key_place
    from memoryd.jobs.embedders.providers import PROVIDERS

    provider = PROVIDERS.get(settings.provider)
    if provider is None:
        return
    if not service_of(settings).base_url:
        raise InvalidParams(
            f"it is not known where {settings.provider} is asked",
            hint=f"memoryd model use {settings.provider}:{settings.model} --base-url http://HOST:PORT/v1",
        )
    if provider.needs_key and key_place(settings, provider.variables, environ) is None:
        raise InvalidParams(
            f"there is no key for {settings.provider} here",
            hint=f"Set {provider.variables[0]} here and where the daemon is started, or embedder.api_key_file.",
        )


def leaves_for(settings: Embedder) -> str | None:
    """The host that notes are sent to; None where they stay on this machine."""
    from memoryd.daemon.configured_models import sends_to, service_of

    return None if settings.provider in ("auto", "local", "none") else sends_to(service_of(settings))


def list_services(settings: Embedder, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    from memoryd.daemon.configured_models import service_of
    from memoryd.daemon.embedding_keys import find_own_key, key_place
    from memoryd.jobs.embedders.providers import PROVIDERS

    rows = []
    for name, provider in PROVIDERS.items():
        is_used = name == settings.provider
        own = settings if is_used else type(settings)(provider=name)
        place = key_place(own, provider.variables, environ)
        rows.append(
            {
                "name": name,
                "model": service_of(own).model or None,
                "base_url": service_of(own).base_url or None,
                "needs_key": provider.needs_key,
                "key": str(place) if place and place.holds_key(environ) else None,  # where it is, never what
                "for_auto": find_own_key(name, environ) is not None,
                "used": is_used,
            }
        )
    return rows


def print_services(rows: list[dict[str, Any]], provider: str) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("", "service", "model", "asked at", "key"):
        table.add_column(column)
    for row in rows:
        key = row["key"] or ("none found" if row["needs_key"] else "not needed")
        table.add_row(
            "●" if row["used"] else "",
            row["name"],
            row["model"] or "to be named",
            row["base_url"] or "to be named",
            key,
        )
    say("")
    console().print(table)
    if provider == "none":
        say('\nNothing is embedded, as configured (embedder.provider = "none").')
    elif provider == "auto":
        given = [row["name"] for row in rows if row["for_auto"]]
        then = f"{given[0]}, for memoryd was given a key for it" if given else "nobody: notes stay on this machine"
        say(f"\nauto: the local model; where that cannot be had, {then}.")
