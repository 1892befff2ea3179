"""What reading the configuration again comes to: what differs, what of it can change live, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from memoryd.daemon.config import Config
from memoryd.daemon.config_schema import SETTINGS, value_of

AT_START = ("embedder", "paths", "store")  # sections that are read when memoryd starts and hold until it stops …
# … but for these of [embedder]: a model that is gone over to, and what is looked up each time.
LIVE = ("model", "query_prefix", "document_prefix", "auto_install", "keep_generations_days", "idle_unload_minutes")

KEYS_AT_START = ("index.nice",)  # a thread that is nice cannot take it back


@dataclass(frozen=True, slots=True)
class Difference:
    """Between the configuration in force and the one that is wanted."""

    live: tuple[str, ...]  # settings and workspaces that change now
    at_start: tuple[str, ...]  # settings that wait for a restart
    config: Config  # what is in force afterwards


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The outcome, as ``status`` and the method ``reload`` tell it."""

    at: float  # unix time
    changed: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()  # configured, but not in force before memoryd is restarted
    problems: tuple[str, ...] = ()  # why everything stayed as it was
    hint: str | None = None


def compare(running: Config, wanted: Config) -> Difference:
    """Which settings differ, by dotted key; of a workspace, that it is added, removed or changed."""
    differing = [key for key in SETTINGS if value_of(running, key) != value_of(wanted, key)]
    at_once = {f"embedder.{name}" for name in LIVE}
    at_start = tuple(
        key for key in differing if key in KEYS_AT_START or (key.partition(".")[0] in AT_START and key not in at_once)
    )
    embedder = replace(running.embedder, **{name: getattr(wanted.embedder, name) for name in LIVE})
    live = tuple(key for key in differing if key not in at_start)
    return Difference(
        (*_workspaces(running, wanted), *live),
        at_start,
        replace(
            wanted,
            paths=running.paths,
            store=running.store,
            embedder=embedder,
            index=replace(wanted.index, nice=running.index.nice),
        ),
    )


def _workspaces(running: Config, wanted: Config) -> list[str]:
    before = {workspace.name: workspace for workspace in running.workspaces}
    after = {workspace.name: workspace for workspace in wanted.workspaces}
    return [
        *(f"workspace {name} added" for name in after if name not in before),
        *(f"workspace {name} removed" for name in before if name not in after),
        *(f"workspace {name} changed" for name in after if name in before and before[name] != after[name]),
    ]
