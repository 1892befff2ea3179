"""What the configuration says, in the words of the rooms below."""

from __future__ import annotations

import time
from collections.abc import Mapping

from memoryd.daemon.config import Config
from memoryd.daemon.paths import Paths, ensure_private
from memoryd.daemon.session_workspaces import session_workspaces
from memoryd.daemon.vector_uri import is_folder
from memoryd.jobs.hyde import Hypotheses
from memoryd.jobs.index_text import IndexSettings
from memoryd.jobs.llm.protocol import LanguageModel
from memoryd.jobs.pauses import PauseSettings
from memoryd.jobs.scope import parse_rule
from memoryd.jobs.storage_options import read_options
from memoryd.jobs.workspace import Workspace
from memoryd.store.place import VectorPlace
from memoryd.store.precision import Precision
from memoryd.store.protocols import Clock


def configured_workspaces(config: Config) -> dict[str, Workspace]:
    notes = {
        workspace.name: Workspace(
            workspace.name,
            workspace.path,
            workspace.include,
            workspace.ignore,
            workspace.evergreen,
            tuple(map(parse_rule, workspace.scopes)),
        )
        for workspace in config.workspaces
    }
    return notes | session_workspaces(config.sessions, notes)


def configured_place(config: Config, paths: Paths, environ: Mapping[str, str], clock: Clock = time.time) -> VectorPlace:
    """Where the vectors are kept; a folder of its own is made private."""
    store = config.store
    if store.vectors_uri and not is_folder(store.vectors_uri):
        return VectorPlace(store.vectors_uri, lambda: read_options(store.storage_options, environ), clock)
    if store.vectors_uri:
        ensure_private(paths.vectors_dir)
    return VectorPlace(paths.vectors_dir)


def configured_indexing(config: Config) -> IndexSettings:
    return IndexSettings(config.index.chunk_tokens, config.index.overlap_tokens, config.index.max_file_bytes)


def configured_precision(config: Config) -> Precision:
    return "float32" if config.embedder.precision == "float32" else "int8"


def configured_pauses(config: Config) -> PauseSettings:
    return PauseSettings(config.index.pause_on_battery, config.index.pause_on_pressure)


def configured_hypotheses(config: Config, llm: LanguageModel) -> Hypotheses:
    hyde = config.search.hyde
    # The plain query must still be answered within the request's own time.
    timeout_s = min(hyde.timeout_s, 0.8 * config.server.request_timeout_s)
    return Hypotheses(llm, max_tokens=hyde.max_tokens, timeout_s=timeout_s)
