"""What differs between two configurations, and what of it waits for a restart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from memoryd.daemon.config import Config, Embedder, Index, Locations, Log, Search, Weights, Workspace
from memoryd.daemon.config_schema import SETTINGS
from memoryd.daemon.reloaded import AT_START, compare

NOTES, WORK = Workspace(Path("/notes"), "notes"), Workspace(Path("/work"), "work")


def test_equal_configurations_differ_in_nothing() -> None:
    config = Config(workspaces=(NOTES,))
    difference = compare(config, replace(config, file=Path("/elsewhere.toml")))
    assert (difference.live, difference.at_start) == ((), ())
    assert difference.config.file == Path("/elsewhere.toml")


def test_each_setting_is_named_by_its_key() -> None:
    wanted = Config(search=Search(limit=3, weights=Weights(vector=0.0)), log=Log(level="debug"))
    assert compare(Config(), wanted).live == ("search.limit", "search.weights.vector", "log.level")


def test_workspaces_are_added_removed_and_changed() -> None:
    running = Config(workspaces=(NOTES, WORK))
    wanted = Config(workspaces=(replace(NOTES, evergreen=("a.md",)), Workspace(Path("/new"), "new")))
    assert compare(running, wanted).live == (
        "workspace new added",
        "workspace work removed",
        "workspace notes changed",
    )


def test_what_is_read_at_the_start_stays_in_force_and_waits() -> None:
    running = Config(workspaces=(NOTES,))
    embedder = Embedder(model="bge-m3", threads=3)
    wanted = replace(running, embedder=embedder, paths=Locations(data="/x"), search=Search(limit=2))
    difference = compare(running, wanted)
    assert difference.live == ("embedder.model", "search.limit")
    assert difference.at_start == ("embedder.threads", "paths.data")
    assert (difference.config.embedder, difference.config.paths) == (Embedder(model="bge-m3"), running.paths)
    assert difference.config.search.limit == 2
    # Asked again, it still waits: what is in force has not changed.
    assert compare(difference.config, wanted).at_start == difference.at_start


def test_sections_that_wait_are_sections() -> None:
    assert {key.partition(".")[0] for key in SETTINGS} > set(AT_START)


def test_niceness_waits_for_a_restart_and_the_pauses_do_not() -> None:
    wanted = Config(index=Index(nice=0, pause_on_battery=True), embedder=Embedder(idle_unload_minutes=1))
    difference = compare(Config(), wanted)
    assert difference.live == ("index.pause_on_battery", "embedder.idle_unload_minutes")
    assert difference.at_start == ("index.nice",)
    assert difference.config.index == Index(pause_on_battery=True)
    assert difference.config.embedder == wanted.embedder
