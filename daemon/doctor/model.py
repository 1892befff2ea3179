"""The models: whether they are there, whole, and of the right kind."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from memoryd.daemon.config import Config
from memoryd.daemon.doctor.finding import Finding, ok, problem, warning
from memoryd.jobs.models.disk import hash_file
from memoryd.jobs.models.gguf_file import verify_gguf
from memoryd.jobs.models.install import installed
from memoryd.jobs.models.manifest import read_manifest
from memoryd.store.errors import MemorydError

NEED_BYTES = 500_000_000  # room for a model that is still to be fetched and converted


@dataclass(frozen=True, slots=True)
class ModelFacts:
    spec: str
    path: Path | None  # None: not installed
    auto_install: bool
    promised: str | None  # sha256 of the manifest; None: a file of the user's own
    found: str | None  # sha256 of the file
    fault: str | None  # why it cannot be used
    hint: str | None
    described: str  # what it is


def gather_model(config: Config, models_dir: Path) -> ModelFacts:
    spec, auto = config.embedder.model, config.embedder.auto_install
    try:
        path = installed(models_dir, spec)
        if path is None:
            return ModelFacts(spec, None, auto, None, None, None, None, "")
        manifest = read_manifest(path)
        promised = str(manifest.get("sha256")) if manifest and path.is_relative_to(models_dir) else None
        found = hash_file(path) if promised else None
        if found == promised:  # else it is damaged anyway, and the header may be anything
            gguf = verify_gguf(path)
            described = f"{gguf.architecture}, {gguf.dimension} dimensions, {gguf.pooling} pooling"
            return ModelFacts(spec, path, auto, promised, found, None, None, described)
    except (MemorydError, OSError) as error:
        message = error.message if isinstance(error, MemorydError) else str(error)
        hint = error.hint if isinstance(error, MemorydError) else None
        return ModelFacts(spec, None, auto, None, None, message, hint, "")
    return ModelFacts(spec, path, auto, promised, found, None, None, "")


def check_model(facts: ModelFacts) -> Finding:
    if facts.fault:
        return problem("model", facts.fault, facts.hint or "memoryd model install")
    if facts.path is None and facts.spec.endswith(".gguf") and not facts.spec.startswith("hf:"):
        return problem("model", f"there is no file {facts.spec}", "Correct embedder.model")
    if facts.path is None and not facts.auto_install:
        return problem("model", f"{facts.spec} is not installed, and auto_install is off", "memoryd model install")
    if facts.path is None:
        return warning("model", f"{facts.spec} is not installed yet; the daemon fetches it", "memoryd model install")
    if facts.found != facts.promised:
        return problem(
            "model", f"{facts.path} is not what was installed: its checksum differs", "memoryd model install"
        )
    verified = "checksum as installed" if facts.promised else "your own file, its header is whole"
    return ok("model", f"{facts.spec}: {facts.described}; {verified}")


def check_language_model(config: Config) -> Finding:
    """[llm] reads no more than whether what it names is there."""
    llm = config.llm
    if llm.provider == "none":
        return ok("language model", "none is configured, and nothing needs one")
    if llm.provider == "local" and not Path(llm.model).is_file():
        return problem("language model", f"there is no file {llm.model}", "Correct llm.model")
    if llm.api_key_env and not os.environ.get(llm.api_key_env):
        return warning(
            "language model",
            f"the environment variable {llm.api_key_env} (llm.api_key_env) is not set here",
            "Set it where the daemon starts, or use llm.api_key_file",
        )
    if llm.api_key_file and not Path(llm.api_key_file).is_file():
        return problem("language model", f"there is no file {llm.api_key_file}", "Correct llm.api_key_file")
    return ok("language model", f"{llm.provider}: {llm.model}")
