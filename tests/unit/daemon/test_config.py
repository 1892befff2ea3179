"""Loading the configuration: what wins, what is refused, and how it is told."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memoryd.daemon.config import Config, Workspace
from memoryd.daemon.config_file import load_config
from memoryd.daemon.config_schema import SETTINGS, Setting, value_of
from memoryd.store.errors import ConfigInvalid


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with an empty current folder inside."""
    (tmp_path / "here").mkdir()
    return tmp_path


def load(home: Path, text: str | None = None, environ: Mapping[str, str] | None = None, **rest: Any) -> Config:
    if text is not None:
        (home / "config.toml").write_text(text, encoding="utf-8")
    file = home / "config.toml" if text is not None else None
    return load_config(file, {"HOME": str(home), **(environ or {})}, home / "here", **rest)


def problems(home: Path, text: str | None = None, environ: Mapping[str, str] | None = None, **rest: Any) -> list[str]:
    with pytest.raises(ConfigInvalid) as caught:
        load(home, text, environ, **rest)
    return [problem.replace(f"{home}/", "") for problem in caught.value.problems]


ALONG = {  # what a setting cannot do without
    "llm.provider": {"MEMORYD_LLM__MODEL": "/models/some.gguf"},
    "embedder.base_url": {"MEMORYD_EMBEDDER__PROVIDER": "openai"},
    "store.storage_options": {"MEMORYD_STORE__VECTORS_URI": "s3://bucket/memory"},
    **{
        f"embedder.api_key_{place}": {"MEMORYD_EMBEDDER__PROVIDER": "openai"} for place in ("env", "file", "credential")
    },
}


def another_value(setting: Setting) -> Any:
    """An allowed value that is not the default."""
    if setting.choices:
        return next(choice for choice in setting.choices if choice != setting.default)
    if setting.kind is bool:
        return not setting.default
    if setting.kind is str:
        if setting.key == "embedder.base_url":
            return "http://other.example/v1"
        return "/some/where" if setting.form in ("path", "place") else "other"
    if setting.form == "options":
        return ("region = there", "secret_access_key = env:SOME_SECRET")
    if setting.kind is tuple:
        return (
            ("other/*.md", "more/**") if setting.form == "glob" else ("/some/where/*.jsonl", "/else/where/**/*.jsonl")
        )
    step = 1 if setting.kind is int else 0.25
    return setting.default + (step if setting.default + step <= (setting.high or 0) else -step)


def as_text(setting: Setting, value: Any) -> str:
    """As an environment variable has it."""
    if setting.kind is tuple:
        return ("," if setting.form == "options" else ":").join(value)
    return str(value).lower() if setting.kind is bool else str(value)


def test_globs_of_transcripts_are_expanded_and_need_a_folder(home: Path) -> None:
    config = load(home, '[sessions]\npaths = ["~/.claude/projects/**/*.jsonl", "talks/*.jsonl"]\n')
    assert config.sessions.paths == (f"{home}/.claude/projects/**/*.jsonl", f"{home}/talks/*.jsonl")
    for glob in ("**/*.jsonl", "/**", "~/a/../b/*.jsonl", "/talks/", "", "*"):
        (problem,) = problems(home, f'[sessions]\npaths = ["{glob}"]\n')
        assert "a folder before its first *" in problem


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("db://cloud", "LanceDB Cloud does not give out whole tables"),
        ("ftp://host/x", 'found "ftp://"'),
        ("s3://id:hush@bucket/x", "keys in store.storage_options"),
        ("s3://bucket/x?sig=hush", "keys in store.storage_options"),
        ("s3://", "without a bucket"),
    ],
)
def test_place_of_the_vectors_that_cannot_be_used_is_refused(home: Path, uri: str, told: str) -> None:
    (problem,) = problems(home, f'[store]\nvectors_uri = "{uri}"\n')
    assert problem.startswith("config.toml:2: store.vectors_uri: ")
    assert told in problem
    assert "hush" not in problem


@pytest.mark.parametrize(
    "option",
    ["secret_access_key = hush", "sas_token=hush", "Aws-Secret = hush", "hush", "account_key = env:", "= hush"],
)
def test_key_in_the_configuration_is_refused_and_not_shown(home: Path, option: str) -> None:
    text = f'[store]\nvectors_uri = "s3://bucket"\nstorage_options = ["{option}"]\n'
    (problem,) = problems(home, text)
    assert "a hidden value" in problem
    assert "hush" not in problem


def test_folder_for_the_vectors_and_the_file_of_a_key_are_expanded(home: Path) -> None:
    assert load(home, '[store]\nvectors_uri = "~/big"\n').store.vectors_uri == f"{home}/big"
    text = '[store]\nvectors_uri = "s3://bucket/a"\nstorage_options = ["secret_access_key=file:~/key"]\n'
    assert load(home, text).store.storage_options == (f"secret_access_key = file:{home}/key",)


def test_without_a_file_everything_is_default(home: Path) -> None:
    config = load(home)
    assert config == Config()
    assert config.file is None


def test_default_file_is_read_from_the_xdg_folder(home: Path) -> None:
    file = home / "xdg" / "memoryd" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("[search]\nlimit = 9\n")
    config = load(home, environ={"XDG_CONFIG_HOME": str(home / "xdg")})
    assert (config.search.limit, config.file) == (9, file)


def test_variable_names_the_file_and_the_command_line_wins(home: Path) -> None:
    (home / "a.toml").write_text("search.limit = 8")
    (home / "b.toml").write_text("search.limit = 9")
    environ = {"MEMORYD_CONFIG": "../a.toml", "HOME": str(home)}
    assert load_config(None, environ, home / "here").search.limit == 8
    assert load_config(Path("../b.toml"), environ, home / "here").search.limit == 9


def test_named_file_must_exist(home: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"nowhere\.toml: there is no such file"):
        load_config(Path("nowhere.toml"), {"HOME": str(home)}, home)
    with pytest.raises(ConfigInvalid, match="cannot be read: Is a directory"):
        load_config(home, {"HOME": str(home)}, home)


def test_syntax_error_names_file_and_line(home: Path) -> None:
    assert problems(home, "[search]\nlimit =\n") == ["config.toml:2:8: not valid TOML: Invalid value"]


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 5000, "a = " + "9" * 5000, "search.limit = 0x" + "f" * 9000, "[log]\nlevel='\xff"]
)
def test_hostile_text_is_refused_like_any_other(home: Path, text: str) -> None:
    assert len(problems(home, text)) == 1


def test_file_that_is_not_utf8_is_refused(home: Path) -> None:
    (home / "latin.toml").write_bytes(b'[log]\nlevel = "\xff"')
    with pytest.raises(ConfigInvalid, match="is not UTF-8 text"):
        load_config(home / "latin.toml", {}, home)


def test_byte_order_mark_is_no_syntax_error(home: Path) -> None:
    assert load(home, "\ufeff[search]\nlimit = 9\n").search.limit == 9


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_every_setting_can_be_overridden_from_the_environment(home: Path, setting: Setting) -> None:
    value = another_value(setting)
    text = as_text(setting, value)
    config = load(home, environ={**ALONG.get(setting.key, {}), setting.variable: text})
    assert value_of(config, setting.key) == value
    assert type(value_of(config, setting.key)) is setting.kind
    assert config.origin[setting.key] == "environment"


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_every_setting_can_be_overridden_from_the_command_line(home: Path, setting: Setting) -> None:
    value = another_value(setting)
    for given in (value, as_text(setting, value)):
        config = load(home, environ=ALONG.get(setting.key), overrides={setting.key: given})
        assert value_of(config, setting.key) == value


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_every_setting_refuses_another_type(home: Path, setting: Setting) -> None:
    table, _, name = setting.key.rpartition(".")
    (problem,) = problems(home, f"[{table}]\n\n{name} = 1979-05-27\n")
    assert problem == f"config.toml:3: {setting.key}: found 1979-05-27; allowed: {setting.allowed}"


def test_later_places_win_and_are_named(home: Path) -> None:
    text = "[search]\nlimit = 7\nrrf_k = 7\ncandidates = 7\n"
    environ = {"MEMORYD_SEARCH__RRF_K": "8", "MEMORYD_SEARCH__CANDIDATES": "8"}
    config = load(home, text, environ, overrides={"search.candidates": 9})
    assert (config.search.limit, config.search.rrf_k, config.search.candidates) == (7, 8, 9)
    assert {key: config.origin[f"search.{key}"] for key in ("limit", "rrf_k", "candidates")} == {
        "limit": "file",
        "rrf_k": "environment",
        "candidates": "command line",
    }


def test_all_problems_are_told_at_once(home: Path) -> None:
    text = """
[serch]
limit = 3

[search]
limt = 3
limit = 1000
min_score = nan
weights = 1

[search.decay]
strenght = 0.5

[index]
chunk_tokens = "400"
settle_ms = true
limit = 3

[log]
level = "warn"

[[workspace]]
nme = "x"
include = ["../../etc/*"]
"""
    found = problems(
        home,
        text,
        {"MEMORYD_SEARCH__LIMT": "3", "MEMORYD_SEARCH__RRF_K": "x", "MEMORYD_CONFIG": ""},
        overrides={"log.levle": "debug", "limit": 3},
    )
    levels = "debug, info, warning or error"
    globs = 'a list of globs inside the folder, such as "memory/**/*.md"'
    assert found == [
        "config.toml:2: serch: unknown; did you mean search?",
        "config.toml:6: search.limt: unknown; did you mean search.limit?",
        "config.toml:7: search.limit: found 1000; allowed: a whole number, 1 to 100",
        "config.toml:8: search.min_score: found nan; allowed: a number, 0 to 1",
        "config.toml:9: search.weights: found 1; allowed: a table, [search.weights]",
        "config.toml:12: search.decay.strenght: unknown; did you mean search.decay.strength?",
        'config.toml:15: index.chunk_tokens: found "400"; allowed: a whole number, 128 to 8192',
        "config.toml:16: index.settle_ms: found true; allowed: a whole number, 0 to 5000",
        "config.toml:17: index.limit: unknown; did you mean search.limit?",
        f'config.toml:20: log.level: found "warn"; allowed: {levels}; did you mean warning?',
        "environment: MEMORYD_SEARCH__LIMT: unknown; did you mean MEMORYD_SEARCH__LIMIT?",
        'environment: MEMORYD_SEARCH__RRF_K: found "x"; allowed: a whole number, 1 to 1000',
        "command line: log.levle: unknown; did you mean log.level?",
        "command line: limit: unknown; did you mean search.limit?",
        "config.toml:23: workspace[1].nme: unknown; did you mean name?",
        f"config.toml:24: workspace[1].include: found a list; allowed: {globs}",
        "config.toml:22: workspace[1].path: missing; allowed: a path",
    ]


def test_key_that_resembles_nothing_gets_the_list_of_known_ones(home: Path) -> None:
    assert problems(home, "[log]\nzzz = 1\n") == [
        "config.toml:2: log.zzz: unknown; known here: log.format, log.include_text, log.level"
    ]


def test_quoted_dotted_key_is_not_taken_for_a_path_through_tables(home: Path) -> None:
    (problem,) = problems(home, '"search.limit" = 3\n')
    assert problem.startswith('config.toml: "search.limit": unknown')


def test_overlap_must_leave_room_in_the_chunk(home: Path) -> None:
    assert load(home, "index = {chunk_tokens = 150, overlap_tokens = 74}").index.overlap_tokens == 74
    (problem,) = problems(home, "[index]\nchunk_tokens = 150\n", {"MEMORYD_INDEX__OVERLAP_TOKENS": "75"})
    assert problem == (
        "environment: MEMORYD_INDEX__OVERLAP_TOKENS: found an overlap of 75 in chunks of 150; "
        "allowed: less than half a chunk, up to 74"
    )
    (problem,) = problems(home, "[index]\nchunk_tokens = 150\n")
    assert problem.startswith("config.toml:2: index.chunk_tokens: found an overlap of 80")


def test_one_leg_may_be_off_but_not_both(home: Path) -> None:
    assert load(home, "search.weights.vector = 0").search.weights.vector == 0.0
    (problem,) = problems(home, "[search.weights]\nwords = 0\ntrigram = 0\nvector = 0\n")
    assert problem.startswith("config.toml:4: search.weights.vector: found all weights 0")


def test_whole_number_is_a_number_but_true_is_not(home: Path) -> None:
    assert load(home, "search.min_score = 1").search.min_score == 1.0
    assert len(problems(home, "search.min_score = true")) == 1


@pytest.mark.parametrize(("word", "value"), [("yes", True), ("ON", True), ("1", True), ("no", False), ("0", False)])
def test_truth_has_several_words_in_the_environment(home: Path, word: str, value: bool) -> None:
    assert load(home, environ={"MEMORYD_EMBEDDER__AUTO_INSTALL": word}).embedder.auto_install is value


def test_paths_are_expanded_and_relative_to_the_file(home: Path) -> None:
    text = '[paths]\ndata = "data"\ncache = "~/cache"\nsocket = "${RUN}/$NAME.sock"\n'
    config = load(home, text, {"RUN": "/run/x", "NAME": "m"})
    assert (config.paths.data, config.paths.cache) == (str(home / "data"), str(home / "cache"))
    assert config.paths.socket == "/run/x/m.sock"


def test_variable_that_is_not_set_is_a_problem_and_not_an_empty_word(home: Path) -> None:
    (problem,) = problems(home, '[paths]\ndata = "$NOWHERE/data"\n')
    assert problem.endswith('found "$NOWHERE/data"; allowed: the environment variable NOWHERE is not set')


def test_model_is_a_path_only_if_it_is_a_gguf_file(home: Path) -> None:
    assert load(home, 'embedder.model = "models/x.gguf"').embedder.model == str(home / "models/x.gguf")
    assert load(home, 'embedder.model = "hf:a/b/x.gguf"').embedder.model == "hf:a/b/x.gguf"
    assert load(home, 'embedder.model = "all-minilm-l6-v2"').embedder.model == "all-minilm-l6-v2"


def test_settings_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Config().search.limit = 3  # type: ignore[misc]
    assert hash(Workspace(Path("/x")))


def test_loading_does_not_touch_the_process(home: Path) -> None:
    before = dict(os.environ)
    load(home, 'paths.data = "~/x"')
    assert dict(os.environ) == before
