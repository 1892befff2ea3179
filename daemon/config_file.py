"""The configuration as loaded: defaults < file < environment < command line, every problem told at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from memoryd.daemon.config import Config, Embedder
from memoryd.daemon.config_draft import Draft
from memoryd.daemon.config_problem import describe, did_you_mean, find_line, quote_key
from memoryd.daemon.config_schema import SETTINGS, build, parse_text
from memoryd.daemon.config_workspaces import choose_workspaces, read_blocks
from memoryd.daemon.embedding_keys import KEY_VARIABLES
from memoryd.daemon.paths import default_config_file
from memoryd.daemon.vector_uri import is_folder, uri_problems
from memoryd.store.errors import ConfigInvalid

# Variables that stand for no single key of the configuration.
SHORTCUTS = ("MEMORYD_CONFIG", "MEMORYD_WORKSPACE", "MEMORYD_FAILPOINTS", *KEY_VARIABLES)
HINT = "config.example.toml documents every key; `memoryd config check` reads the file again"


def load_config(
    config_file: Path | None,
    environ: Mapping[str, str],
    cwd: Path,
    *,
    overrides: Mapping[str, Any] | None = None,
    workspaces: Sequence[Path] = (),
) -> Config:
    """The effective configuration; ``overrides`` (by dotted key) and ``workspaces`` are the command line's.

    Reads one file and looks at folders only to tell which they are. Raises ``ConfigInvalid``.
    """
    named = config_file or (Path(environ["MEMORYD_CONFIG"]) if environ.get("MEMORYD_CONFIG") else None)
    file = cwd / (named or default_config_file(environ))
    text = _read_text(file, must_exist=named is not None)
    table = _parse_toml(file, text or "")
    blocks = table.pop("workspace", [])

    def place(key: str) -> str:
        line = find_line(text or "", key)
        return f"{file}:{line}: {key}" if line else f"{file}: {key}"

    draft = Draft(SETTINGS, environ)
    draft.take_table(table, place, file.parent)
    _take_environment(draft, cwd)
    for key, value in (overrides or {}).items():
        if key in SETTINGS:
            value = parse_text(SETTINGS[key], value) if isinstance(value, str) else value
            draft.take(key, value, "command line", "command line: {}".format, cwd)
        else:
            shown = ".".join(map(quote_key, key.split(".")))
            draft.problems.append(f"command line: {shown}: unknown{did_you_mean(key, SETTINGS)}")

    configured = read_blocks(blocks, place, file.parent, environ, draft.problems)
    chosen = choose_workspaces(configured, environ, cwd, workspaces, draft.problems)
    draft.problems.extend(_contradictions(draft))
    if draft.problems:
        raise ConfigInvalid(tuple(draft.problems), hint=HINT)
    return build(
        Config,
        draft.values,
        workspaces=chosen.workspaces,
        file=file if text is not None else None,
        origin={"workspace": chosen.origin, **draft.origin},
        notes=chosen.notes,
    )


def _take_environment(draft: Draft, cwd: Path) -> None:
    variables = {setting.variable: setting for setting in SETTINGS.values()}
    for variable in sorted(name for name in draft.environ if name.startswith("MEMORYD_")):
        if setting := variables.get(variable):
            value = parse_text(setting, draft.environ[variable])
            draft.take(setting.key, value, "environment", _variable_of, cwd)
        elif variable not in SHORTCUTS:
            guess = did_you_mean(variable, (*variables, *SHORTCUTS))
            draft.problems.append(f"environment: {quote_key(variable)}: unknown{guess}")


def _variable_of(key: str) -> str:
    return f"environment: {SETTINGS[key].variable}"


def _contradictions(draft: Draft) -> Iterable[str]:
    """Values that are each allowed but do not go together; the place named is one that a person wrote."""
    config = build(Config, draft.values)
    index, weights = config.index, config.search.weights
    if index.overlap_tokens * 2 >= index.chunk_tokens and "index.chunk_tokens" not in draft.refused:
        key = next(key for key in ("index.overlap_tokens", "index.chunk_tokens") if key in draft.places)
        limit = (index.chunk_tokens - 1) // 2
        found = f"an overlap of {index.overlap_tokens} in chunks of {index.chunk_tokens}"
        yield f"{draft.places[key](key)}: found {found}; allowed: less than half a chunk, up to {limit}"
    if weights.words == weights.trigram == weights.vector == 0:
        where = draft.places["search.weights.vector"]("search.weights.vector")
        yield f"{where}: found all weights 0; allowed: one above 0 at least"
    ingest = config.ingest
    if ingest.overlap_chars * 2 >= ingest.chunk_chars and "ingest.chunk_chars" not in draft.refused:
        stated = next(key for key in ("ingest.overlap_chars", "ingest.chunk_chars") if key in draft.places)
        found = f"an overlap of {ingest.overlap_chars} in pieces of {ingest.chunk_chars}"
        yield f"{draft.places[stated](stated)}: found {found}; allowed: less than half a piece"
    llm = config.llm
    if llm.provider == "local" and not llm.model.endswith(".gguf"):
        where = draft.places["llm.provider"]("llm.provider")
        yield f'{where}: found "local" without its model; allowed: with a .gguf as llm.model'
    if llm.provider == "ollama" and not (llm.model and (not llm.base_url or _is_plain_url(llm.base_url))):
        where = draft.places["llm.provider"]("llm.provider")
        wanted = "with llm.model, and if llm.base_url is set, an http:// or https:// address without user and password"
        yield f'{where}: found "ollama" without its model or with no address; allowed: {wanted}'
    if llm.provider == "openai-compatible" and not (llm.model and _is_plain_url(llm.base_url)):
        where = draft.places["llm.provider"]("llm.provider")
        wanted = "with llm.model, and an http:// or https:// address without user and password as llm.base_url"
        yield f'{where}: found "openai-compatible" without its model or address; allowed: {wanted}'
    yield from _embedder_contradictions(config.embedder, draft)
    for wrong in uri_problems(config.store.vectors_uri):
        yield f"{draft.places['store.vectors_uri']('store.vectors_uri')}: {wrong}"
    if config.store.storage_options and is_folder(config.store.vectors_uri):
        where = draft.places["store.storage_options"]("store.storage_options")
        yield f"{where}: found without a bucket as store.vectors_uri; allowed: with one"


def _embedder_contradictions(embedder: Embedder, draft: Draft) -> Iterable[str]:
    def where(key: str) -> str:
        return draft.places[f"embedder.{key}"](f"embedder.{key}")

    is_remote = embedder.provider not in ("auto", "local", "none")
    own = [key for key in ("base_url", "api_key_env", "api_key_file", "api_key_credential") if getattr(embedder, key)]
    if own and embedder.provider == "auto":  # whose key or address it is cannot be told, and must not be guessed
        yield f'{where(own[0])}: found with provider = "auto"; allowed: with embedder.provider, whose it is'
    elif embedder.base_url and not is_remote:
        yield f'{where("base_url")}: found with provider = "{embedder.provider}", which is asked nowhere; allowed: ""'
    elif embedder.base_url and not _is_plain_url(embedder.base_url):
        yield f"{where('base_url')}: found an address that cannot be asked; allowed: {_PLAIN}"
    elif embedder.provider == "openai-compatible" and not (
        embedder.base_url and embedder.model not in ("", Embedder().model)
    ):
        yield (
            f'{where("provider")}: found "openai-compatible" without its model or address; allowed: with'
            f" embedder.model, and as embedder.base_url {_PLAIN}"
        )


_PLAIN = "an http:// or https:// address without user, password and ?"


def _is_plain_url(url: str) -> bool:
    scheme, colon, rest = url.partition("://")
    return scheme in ("http", "https") and colon != "" and rest not in ("", "/") and not set("@?#") & set(rest)


def _read_text(file: Path, *, must_exist: bool) -> str | None:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        if not must_exist:
            return None
        raise ConfigInvalid((f"{file}: there is no such file",), hint="check --config and MEMORYD_CONFIG") from None
    except OSError as error:
        raise ConfigInvalid((f"{file}: cannot be read: {error.strerror}",)) from error
    except UnicodeDecodeError as error:
        raise ConfigInvalid((f"{file}: is not UTF-8 text (byte {error.start})",)) from error
    except ValueError as error:
        raise ConfigInvalid((f"{describe(str(file))}: is not a path: {error}",)) from error


def _parse_toml(file: Path, text: str) -> dict[str, Any]:
    if not text:
        return {}
    import tomllib  # costs milliseconds, and many have no file

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also numbers of thousands of digits
        line = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        place = f"{file}:{line[1]}:{line[2]}" if line else str(file)
        reason = re.sub(r" \(at line .*\)$", "", str(error).partition("\n")[0])
        raise ConfigInvalid((f"{place}: not valid TOML: {reason}",), hint="see https://toml.io") from error
