"""``memoryd model rollback`` and ``memoryd model prune``: the generations of vectors that earlier models left."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from memoryd.daemon.commands.options import AddCommon, load
from memoryd.daemon.commands.output import plural, print_json, say, size

if TYPE_CHECKING:
    from memoryd.daemon.config import Config, Embedder
    from memoryd.daemon.paths import Paths
    from memoryd.store.cache import SqliteCache
    from memoryd.store.generations import Generations


def add_actions(actions: Any, add_common: AddCommon) -> None:
    for name, action, words in (
        ("rollback", roll_back, "search by the model before again, at once"),
        ("prune", prune, "give back the disk space of models that are no longer used"),
    ):
        sub = actions.add_parser(name, help=words, description=words.capitalize() + ".")
        add_common(sub)
        sub.set_defaults(run=action)


def roll_back(arguments: argparse.Namespace) -> int:
    """Through the daemon, if one runs; else in the ledger, for the next start. The configuration follows."""
    from memoryd.daemon.client import Client
    from memoryd.daemon.config_edit import set_values
    from memoryd.store.errors import NotRunning

    config, paths = load(arguments)
    try:
        with Client(paths.socket, timeout=None) as client:
            result = client.call("model.rollback")
    except NotRunning:
        result = _roll_back_offline(paths, config.embedder)
    in_force = {name: getattr(config.embedder, name) for name in result["settings"]}
    changed = {f"embedder.{name}": value for name, value in result["settings"].items() if in_force[name] != value}
    if changed:
        set_values(paths.config_file, changed)
    if arguments.json:
        print_json({**result, "config": str(paths.config_file) if changed else None})
        return 0
    if result["cancelled"]:
        say(f"The switch is given up: {result['model']} is searched on.")
    else:
        say(f"{result['model']} is searched again; what changed since is embedded in the background.")
    for key, value in changed.items():
        say(f"{key} = {value!r} in {paths.config_file}")
    return 0


def prune(arguments: argparse.Namespace) -> int:
    from memoryd.daemon.client import Client
    from memoryd.store.errors import NotRunning

    config, paths = load(arguments)
    try:
        with Client(paths.socket, timeout=None) as client:
            result = client.call("model.prune")
    except NotRunning:
        result = _prune_offline(config, paths)
    if arguments.json:
        print_json(result)
    elif result["removed"]:
        models = ", ".join(each["model"] for each in result["removed"])
        say(f"{plural(len(result['removed']), 'generation')} removed ({models}), {size(result['bytes'])} given back.")
    else:
        say("There is nothing to give back: only what is in use is kept.")
    return 0


def _roll_back_offline(paths: Paths, settings: Embedder) -> dict[str, Any]:
    from memoryd.daemon.configured_models import changed_settings, made_with
    from memoryd.store.errors import NotFound

    with _stores(paths) as (generations, _cache):
        active, former = generations.active(), generations.former()
        if former is None or not former.recipe:
            raise NotFound(
                "There is no generation to go back to",
                hint="One is kept for embedder.keep_generations_days after a switch, or until 'memoryd model prune'",
            )
        generations.flip(former.id, time.time())
    return {
        "model": former.model,
        "fingerprint": former.fingerprint,
        "from": active.model if active else None,
        "cancelled": False,
        "settings": changed_settings(settings, made_with(settings, former.recipe)),
    }


def _prune_offline(config: Config, paths: Paths) -> dict[str, Any]:
    from memoryd.daemon.configured import configured_place
    from memoryd.jobs.reclaim import reclaim
    from memoryd.store.quarantine import folder_bytes

    with _stores(paths) as (generations, cache):
        held = folder_bytes(paths.vectors_dir) + cache.bytes_on_disk()
        gone = reclaim(generations, cache, configured_place(config, paths, os.environ), [], time.time())
        freed = held - folder_bytes(paths.vectors_dir) - cache.bytes_on_disk()
    return {
        "removed": [{"model": each.model, "fingerprint": each.fingerprint} for each in gone],
        "bytes": max(0, freed),
    }


@contextmanager
def _stores(paths: Paths) -> Iterator[tuple[Generations, SqliteCache]]:
    """The stores of a daemon that does not run, under its lock."""
    from contextlib import ExitStack

    from memoryd.daemon.instance import InstanceLock
    from memoryd.daemon.paths import ensure_private
    from memoryd.store.cache import SqliteCache
    from memoryd.store.database import Database
    from memoryd.store.generations import Generations

    ensure_private(paths.data_dir)
    lock = InstanceLock(paths.lock_file)
    with ExitStack() as undo:
        undo.callback(lambda: lock.release(in_good_order=not lock.was_cut_off))
        database = Database(paths.database)
        undo.callback(database.close)
        cache = SqliteCache(paths.embeddings, time.time)
        undo.callback(cache.close)
        yield Generations(database), cache
