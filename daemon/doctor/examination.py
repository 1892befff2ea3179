"""Everything that is looked at, in the order in which a person would: from the configuration down to the notes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from memoryd.daemon.config import Config
from memoryd.daemon.config_file import load_config
from memoryd.daemon.doctor.finding import Finding, ok, problem
from memoryd.daemon.doctor.folders import check_file_system, check_folder, check_space, gather_folder, read_mounts
from memoryd.daemon.doctor.inotify import check_instances, check_queue, check_watches, gather_inotify
from memoryd.daemon.doctor.machine import check_clock, check_locale, check_processor, check_sqlite, gather_machine
from memoryd.daemon.doctor.model import NEED_BYTES, check_language_model, check_model, gather_model
from memoryd.daemon.doctor.notes import (
    check_dates,
    check_languages,
    check_notes_file_system,
    check_passed_over,
    check_workspace,
    gather_notes,
)
from memoryd.daemon.doctor.pauses import check_pauses
from memoryd.daemon.doctor.place import check_place, gather_place
from memoryd.daemon.doctor.process import (
    check_daemon,
    check_health,
    check_open_files,
    check_others,
    check_socket,
    check_version,
    gather_process,
)
from memoryd.daemon.doctor.provider import check_provider, gather_provider
from memoryd.daemon.doctor.sessions import check_sessions, gather_sessions
from memoryd.daemon.doctor.units import check_unit, gather_units
from memoryd.daemon.paths import Paths, find_paths
from memoryd.daemon.session_workspaces import session_workspaces
from memoryd.jobs.surroundings import look_around
from memoryd.jobs.workspace import Workspace
from memoryd.store.errors import ConfigInvalid


def examine(config_file: Path | None, environ: Mapping[str, str], cwd: Path) -> Iterator[Finding]:
    """All findings, each as soon as it is known. A broken configuration is one; the rest goes by the defaults."""
    try:
        config = load_config(config_file, environ, cwd)
        paths = find_paths(config, environ)
    except ConfigInvalid as error:
        fix = error.hint or "Correct the configuration; memoryd config check reads it again"
        yield from (problem("configuration", each, fix) for each in error.problems)
        config = Config()
        paths = find_paths(config, environ)
    else:
        yield _check_configuration(config)

    process = gather_process(paths)
    yield check_daemon(process)
    yield check_version(process)
    yield from check_health(process)
    yield check_socket(process)
    yield check_others(process)
    yield check_open_files(process, config)
    yield from _check_folders(paths)

    yield check_place(gather_place(config, environ))
    yield check_provider(gather_provider(config, environ))
    if config.embedder.provider in ("auto", "local"):
        model = gather_model(config, paths.models_dir)
        yield check_model(model)
        yield check_space("disk space for models", gather_folder(paths.cache_dir), 0 if model.path else NEED_BYTES)
    yield check_language_model(config)
    machine = gather_machine()
    for check in (check_processor, check_sqlite, check_locale, check_clock):
        yield check(machine)
    yield check_pauses(config.index, look_around())
    for unit in gather_units(environ):
        yield check_unit(unit)
    yield check_sessions(gather_sessions(config.sessions))
    yield from _check_workspaces(config, process.status["pid"] if process.status else None)


def _check_configuration(config: Config) -> Finding:
    if not config.workspaces:
        return problem(
            "configuration",
            "; ".join(config.notes) or "no workspace is configured",
            'Write [[workspace]] path = "~/notes" into the configuration file, or start memoryd inside a memory',
        )
    read_from = config.file or "the defaults and the environment, without a file"
    return ok("configuration", f"sound: {read_from}")


def _check_folders(paths: Paths) -> Iterator[Finding]:
    data, cache, runtime = (gather_folder(each) for each in (paths.data_dir, paths.cache_dir, paths.socket.parent))
    uid = os.geteuid()
    yield check_folder("data folder", "paths.data", data, uid)
    yield check_folder("cache folder", "paths.cache", cache, uid)
    yield check_folder("runtime folder", "paths.socket", runtime, uid)
    yield check_file_system("file system of the data", "paths.data", data)
    yield check_space("disk space for the index", data, 0)


def _check_workspaces(config: Config, daemon_pid: int | None) -> Iterator[Finding]:
    workspaces = [Workspace(each.name, each.path, each.include, each.ignore) for each in config.workspaces]
    inotify = gather_inotify([*workspaces, *session_workspaces(config.sessions, ()).values()], daemon_pid)
    yield check_watches(inotify)
    yield check_instances(inotify)
    yield check_queue(inotify)
    mounts = read_mounts()
    for workspace in workspaces:
        facts = gather_notes(workspace, config.index.max_file_bytes, mounts)
        yield check_workspace(facts)
        if not facts.unavailable:
            yield check_passed_over(facts)
            yield check_dates(facts)
            if config.embedder.provider in ("auto", "local"):
                yield check_languages(facts, config.embedder.model)
            yield check_notes_file_system(facts)
