"""The configuration printed, and the example that documents it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from memoryd.daemon.config import Config, Workspace
from memoryd.daemon.config_file import load_config
from memoryd.daemon.config_schema import SETTINGS, WORKSPACE_SETTINGS, Setting
from memoryd.daemon.config_show import _shown, render_config, render_example, to_json

EXAMPLE = Path(__file__).parents[3] / "config.example.toml"


def load(folder: Path, text: str) -> Config:
    (folder / "config.toml").write_text(text, encoding="utf-8")
    return load_config(folder / "config.toml", {"HOME": str(folder)}, folder)


def test_example_is_what_the_schema_renders() -> None:
    assert EXAMPLE.read_text(encoding="utf-8") == render_example()


def test_example_is_written_by_a_command() -> None:
    command = [sys.executable, "-m", "memoryd.daemon.config_example"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == render_example()


def test_example_as_it_stands_is_the_defaults(tmp_path: Path) -> None:
    config = load(tmp_path, EXAMPLE.read_text(encoding="utf-8"))
    assert config == Config()
    assert set(config.origin) == {"workspace"}


def test_example_uncommented_is_the_defaults_and_names_every_key(tmp_path: Path) -> None:
    text = re.sub(r"^#(?=[\w\[])", "", EXAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    config = load(tmp_path, text)
    assert config == Config(workspaces=(Workspace(tmp_path / "notes", "notes"),))
    assert set(config.origin) == {"workspace", *SETTINGS}
    assert set(re.findall(r"^(\w+) = ", text.partition("\n[")[2].partition("\n\n")[0], re.MULTILINE)) == set(
        WORKSPACE_SETTINGS
    )


def test_every_setting_has_a_sentence_and_every_number_its_limits() -> None:
    for setting in (*SETTINGS.values(), *WORKSPACE_SETTINGS.values()):
        assert setting.doc.endswith("."), setting.key
        if setting.kind in (int, float):
            assert setting.high is not None, setting.key
            assert (setting.low is None) != (setting.above is None), setting.key


def test_every_default_is_allowed() -> None:
    from memoryd.daemon.config_schema import fit

    for setting in (*SETTINGS.values(), *WORKSPACE_SETTINGS.values()):
        assert setting.default is None or fit(setting, setting.default) == setting.default


def test_shown_configuration_loads_to_the_same_settings(tmp_path: Path) -> None:
    text = """
        [search]
        limit = 9
        min_score = 1e-7
        [embedder]
        query_prefix = "查询: \\"q\\" \\\\ \\u007f\\n"
        auto_install = false
        [[workspace]]
        path = "notes"
        evergreen = ["a/*.md"]
    """
    config = load(tmp_path, text)
    shown = render_config(config)
    assert load(tmp_path, shown) == config
    assert "limit = 9  # from: file" in shown
    assert "rrf_k = 10\n" in shown


def test_notes_are_shown(tmp_path: Path) -> None:
    assert "# no workspace is configured" in render_config(load_config(None, {"HOME": str(tmp_path)}, tmp_path))


def test_json_has_every_setting_and_its_origin(tmp_path: Path) -> None:
    shown = json.loads(json.dumps(to_json(load(tmp_path, 'search.limit = 9\n[[workspace]]\npath = "notes"\n'))))
    assert shown["search"]["limit"] == 9
    assert shown["search"]["weights"] == {"words": 1.0, "trigram": 0.5, "vector": 1.0}
    assert shown["workspace"][0]["path"] == str(tmp_path / "notes")
    assert shown["origin"]["search.limit"] == "file"
    assert set(shown["origin"]) == {"workspace", *SETTINGS}
    assert shown["file"] == str(tmp_path / "config.toml")


def test_secrets_are_masked_by_their_name() -> None:
    def setting(key: str) -> Setting:
        return Setting(key, "", "", str, None, None, None, (), "")

    assert _shown(setting("embedder.api_key"), "abc") == "********"
    assert _shown(setting("embedder.token"), "abc") == "********"
    assert _shown(setting("embedder.token"), "") == ""
    assert not any(each.is_secret for each in SETTINGS.values())


def test_where_a_key_is_kept_is_shown(tmp_path: Path) -> None:
    shown = render_config(load(tmp_path, '[llm]\napi_key_env = "OPENAI_API_KEY"\napi_key_file = "/keys/openai"\n'))
    assert 'api_key_env = "OPENAI_API_KEY"' in shown
    assert 'api_key_file = "/keys/openai"' in shown
