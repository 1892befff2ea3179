"""Which folders are served."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from memoryd.daemon.config import IGNORE, INCLUDE, Config
from memoryd.daemon.config_file import load_config
from memoryd.store.errors import ConfigInvalid


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("here", "notes", "other", "notes/inner"):
        (tmp_path / name).mkdir()
    return tmp_path


def load(
    home: Path, text: str = "", environ: Mapping[str, str] | None = None, workspaces: Sequence[Path] = ()
) -> Config:
    (home / "config.toml").write_text(text)
    environ = {"HOME": str(home), **(environ or {})}
    return load_config(home / "config.toml", environ, home / "here", workspaces=workspaces)


def problems(home: Path, text: str = "", environ: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigInvalid) as caught:
        load(home, text, environ)
    return [problem.replace(f"{home}/", "") for problem in caught.value.problems]


def served(config: Config) -> dict[str, str]:
    return {each.name: str(each.path) for each in config.workspaces}


def test_blocks_are_relative_to_the_file_and_named_by_their_folder(home: Path) -> None:
    config = load(home, '[[workspace]]\npath = "notes"\n[[workspace]]\npath = "~/other"\nname = "mine"\n')
    assert served(config) == {"notes": f"{home}/notes", "mine": f"{home}/other"}
    assert config.origin["workspace"] == "file"
    assert config.notes == ()
    assert (config.workspaces[0].include, config.workspaces[0].ignore) == (INCLUDE, IGNORE)


def test_folder_that_is_missing_is_for_the_runtime_to_see(home: Path) -> None:
    assert served(load(home, '[[workspace]]\npath = "unmounted"\n')) == {"unmounted": f"{home}/unmounted"}


def test_symlink_that_leads_to_itself_is_not_a_crash(home: Path) -> None:
    (home / "loop").symlink_to("loop")
    assert list(served(load(home, '[[workspace]]\npath = "loop"\n'))) == ["loop"]


def test_same_folder_names_become_unique_and_a_given_name_goes_first(home: Path) -> None:
    text = "".join(f'[[workspace]]\npath = "{path}"\n' for path in ("a/notes", "b/notes", "c/notes"))
    assert list(served(load(home, text + 'name = "notes"\n'))) == ["notes-2", "notes-3", "notes"]


def test_folder_name_that_would_break_a_job_key_is_cleaned(home: Path) -> None:
    assert list(served(load(home, '[[workspace]]\npath = "a:b"\n'))) == ["a-b"]
    assert list(served(load(home, '[[workspace]]\npath = "/"\n'))) == ["root"]


@pytest.mark.parametrize("name", ["a/b", "a:b", "a\\nb", "x" * 65])
def test_given_name_that_would_break_a_job_key_is_refused(home: Path, name: str) -> None:
    (problem,) = problems(home, f'[[workspace]]\npath = "notes"\nname = "{name}"\n')
    assert problem.startswith("config.toml:3: workspace[1].name: found ")


def test_name_given_twice_is_refused(home: Path) -> None:
    text = '[[workspace]]\npath = "notes"\nname = "a"\n[[workspace]]\npath = "other"\nname = "a"\n'
    assert problems(home, text) == [
        'config.toml:1: workspace[1]: found the name "a" twice; allowed: unique names',
        'config.toml:4: workspace[2]: found the name "a" twice; allowed: unique names',
    ]


def test_name_of_memoryd_s_own_workspace_is_refused_and_a_folder_of_that_name_gets_another(home: Path) -> None:
    (problem,) = problems(home, '[[workspace]]\npath = "a"\nname = "facts"\n')
    assert "'facts'" in problem or '"facts"' in problem
    assert [each.name for each in load(home, '[[workspace]]\npath = "facts"\n').workspaces] == ["facts-2"]


def test_nested_and_identical_roots_are_refused_also_through_symlinks(home: Path) -> None:
    (home / "link").symlink_to("notes")
    text = "".join(f'[[workspace]]\npath = "{path}"\n' for path in ("notes", "notes/inner", "link"))
    assert [problem.partition(";")[0] for problem in problems(home, text)] == [
        'config.toml:3: workspace[2]: found "notes/inner", nested with "notes"',
        'config.toml:5: workspace[3]: found "notes", the same folder as "notes"',
        'config.toml:5: workspace[3]: found "notes", nested with "notes/inner"',
    ]


@pytest.mark.parametrize("text", ["workspace = 3", "workspace = [3]", '[workspace]\npath = "notes"'])
def test_workspace_that_is_no_list_of_blocks_is_told_how(home: Path, text: str) -> None:
    (problem,) = problems(home, text)
    assert problem.startswith("config.toml:1: workspace: found ")
    assert problem.endswith("allowed: [[workspace]] blocks")


def test_workspace_without_globs_is_refused(home: Path) -> None:
    (problem,) = problems(home, '[[workspace]]\npath = "notes"\ninclude = []\n')
    assert problem == "config.toml:3: workspace[1].include: found no glob; allowed: one or more"


def test_scopes_are_rules(home: Path) -> None:
    rules = '["agent:coder = memory/agents/coder/**", "user:* = memory/users/*/**"]'
    config = load(home, f'[[workspace]]\npath = "notes"\nscopes = {rules}\n')
    assert config.workspaces[0].scopes == ("agent:coder = memory/agents/coder/**", "user:* = memory/users/*/**")


@pytest.mark.parametrize(
    ("rules", "found", "wrong"),
    [
        ('["user:ana = a/**", "bob = b/**"]', "a list", "wrong in 'bob = b/**': its scope is not global, user:<id>"),
        ('["user:ana"]', "a list", "wrong in 'user:ana': it is not of the form scope = glob"),
        ('["user:* = memory/**"]', "a list", "wrong in 'user:* = memory/**': a scope with * needs"),
        ("[3]", "a list with 3", "wrong in '3'"),
        ('"user:ana = a/**"', '"user:ana = a/**"', ""),
    ],
)
def test_rule_that_makes_no_sense_is_named(home: Path, rules: str, found: str, wrong: str) -> None:
    (problem,) = problems(home, f'[[workspace]]\npath = "notes"\nscopes = {rules}\n')
    assert problem.startswith(f"config.toml:3: workspace[1].scopes: found {found}; allowed: a list of rules, such as ")
    assert wrong in problem


def test_environment_names_several_folders_and_replaces_the_blocks(home: Path) -> None:
    config = load(home, '[[workspace]]\npath = "here"\n', {"MEMORYD_WORKSPACE": f"~/notes:../other:{home}/x"})
    assert served(config) == {"notes": f"{home}/notes", "other": f"{home}/other", "x": f"{home}/x"}
    assert config.origin["workspace"] == "environment"


@pytest.mark.parametrize("value", ["", ":"])
def test_empty_variable_counts_as_unset(home: Path, value: str) -> None:
    config = load(home, '[[workspace]]\npath = "notes"\n', {"MEMORYD_WORKSPACE": value})
    assert list(served(config)) == ["notes"]


def test_command_line_wins_and_keeps_what_the_block_of_that_folder_says(home: Path) -> None:
    text = '[[workspace]]\npath = "notes"\nname = "mine"\nevergreen = ["x/*.md"]\n'
    config = load(home, text, {"MEMORYD_WORKSPACE": "/x"}, [Path("../notes"), Path("../here")])
    assert served(config) == {"mine": f"{home}/notes", "here": f"{home}/here"}
    assert config.workspaces[0].evergreen == ("x/*.md",)
    assert config.origin["workspace"] == "command line"


@pytest.mark.parametrize("file", ["MEMORY.md", "memory/a.md", "skills/deep/er/SKILL.md"])
def test_current_folder_is_served_if_it_holds_a_memory(home: Path, file: str) -> None:
    (home / "here" / file).parent.mkdir(parents=True, exist_ok=True)
    (home / "here" / file).touch()
    config = load(home)
    assert served(config) == {"here": f"{home}/here"}
    assert config.notes == (f"no workspace is configured: serving the current folder, {home}/here",)
    assert config.origin["workspace"] == "current folder"


def test_current_folder_without_a_memory_is_not_served_and_the_note_says_what_to_do(home: Path) -> None:
    (home / "here" / "memory").mkdir()
    config = load(home)
    assert config.workspaces == ()
    assert "[[workspace]]" in config.notes[0]
    assert "--workspace" in config.notes[0]
