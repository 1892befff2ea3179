"""Who embeds: whether it can be asked, and whether notes leave this machine for it. Nobody is asked here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memoryd.daemon.config import Config
from memoryd.daemon.configured_models import find_fallback, sends_to, service_of
from memoryd.daemon.doctor.finding import Finding, ok, problem, warning
from memoryd.daemon.embedding_keys import KEYED, key_place
from memoryd.jobs.embedders.providers import PROVIDERS


@dataclass(frozen=True, slots=True)
class ProviderFacts:
    provider: str
    model: str = ""
    base_url: str = ""
    sends_to: str | None = None  # None: nothing leaves this machine
    needs_key: bool = False
    key_place: str | None = None  # where the key should be; None: no place is named
    has_key: bool = False
    variable: str = ""  # where it is usually
    fallback: str | None = None  # of `auto`: the service that memoryd was given a key for, and where
    others: tuple[str, ...] = ()  # variables of services that are set, and not used


def gather_provider(config: Config, environ: Mapping[str, str]) -> ProviderFacts:
    settings = config.embedder
    if settings.provider not in PROVIDERS:
        found = find_fallback(environ) if settings.provider == "auto" else None
        usual = [name for each in KEYED for name in PROVIDERS[each].variables if environ.get(name)]
        return ProviderFacts(
            settings.provider, fallback=f"{found[0]} ({found[1]})" if found else None, others=tuple(usual)
        )
    service = service_of(settings)
    place = key_place(settings, service.provider.variables, environ)
    return ProviderFacts(
        settings.provider,
        service.model,
        service.base_url,
        sends_to(service),
        service.provider.needs_key,
        str(place) if place else None,
        place is not None and place.holds_key(environ),
        next(iter(service.provider.variables), ""),
    )


def check_provider(facts: ProviderFacts) -> Finding:
    match facts.provider:
        case "none":
            return ok("embedding", "by words alone, as configured: no model is loaded and nothing is sent")
        case "local":
            return ok("embedding", "on this machine, as configured")
        case "auto":
            return _check_auto(facts)
    if facts.key_place and not facts.has_key:
        return warning(
            "embedding",
            f"{facts.key_place} holds no key for {facts.provider} here",
            "Set it where the daemon starts; the doctor sees only the variables of this shell",
        )
    if facts.needs_key and not facts.key_place:
        return problem(
            "embedding",
            f"there is no key for {facts.provider}",
            f"Set {facts.variable} where the daemon starts, or embedder.api_key_file",
        )
    if facts.has_key and facts.sends_to and facts.base_url.startswith("http://"):
        return warning(
            "embedding", f"the key for {facts.provider} is sent to {facts.sends_to} in the clear", "Use https://"
        )
    where = f"notes and queries are sent to {facts.sends_to}" if facts.sends_to else "nothing leaves this machine"
    return ok("embedding", f"{facts.provider}: {facts.model}, as configured; {where}")


def _check_auto(facts: ProviderFacts) -> Finding:
    if facts.fallback:
        return ok(
            "embedding",
            f"auto: on this machine; notes are sent to {facts.fallback} only where the local model cannot be had",
        )
    unused = f"; {', '.join(facts.others)} is set and not used" if facts.others else ""
    return ok("embedding", f"auto: on this machine, and nothing is sent{unused}")
