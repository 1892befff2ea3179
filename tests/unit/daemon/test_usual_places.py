"""Where the daemon listens, told without reading the settings: never another place than the settings mean."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.daemon.config_file import load_config
from memoryd.daemon.paths import find_paths
from memoryd.daemon.usual_places import find_usual_socket


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run"), "MEMORYD_WORKSPACE": str(tmp_path)}


@pytest.fixture
def usual(tmp_path: Path) -> Iterator[str]:
    """A socket where one is looked for."""
    path = tmp_path / "run/memoryd/memoryd.sock"
    yield from listen(path)


def listen(path: Path) -> Iterator[str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        yield str(path)


def write_config(tmp_path: Path, text: str) -> None:
    file = tmp_path / ".config/memoryd/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)


def settings_say(environ: dict[str, str], cwd: Path) -> str:
    return str(find_paths(load_config(None, environ, cwd), environ).socket)


@pytest.mark.parametrize("config", [None, "", "[search]\nlimit = 3\n"])
def test_usual_socket_is_the_one_that_the_settings_mean(
    tmp_path: Path, environ: dict[str, str], usual: str, config: str | None
) -> None:
    if config is not None:
        write_config(tmp_path, config)
    assert find_usual_socket(environ) == settings_say(environ, tmp_path) == usual


@pytest.mark.parametrize(
    "config",
    [
        '[paths]\nsocket = "/elsewhere.sock"\n',
        'paths.socket = "/elsewhere.sock"\n',
        '["p\\u0061ths"]\nsocket = "/elsewhere.sock"\n',
    ],
)
def test_configuration_that_may_mean_another_socket_is_read(
    tmp_path: Path, environ: dict[str, str], usual: str, config: str
) -> None:
    write_config(tmp_path, config)
    assert find_usual_socket(environ) is None
    assert settings_say(environ, tmp_path) == "/elsewhere.sock" != usual


def test_named_configuration_counts_instead_of_the_usual_one(
    tmp_path: Path, environ: dict[str, str], usual: str
) -> None:
    write_config(tmp_path, '[paths]\nsocket = "/elsewhere.sock"\n')
    plain, other = tmp_path / "plain.toml", tmp_path / "other.toml"
    plain.write_text("")
    other.write_text('[paths]\ndata = "/elsewhere"\n')
    assert find_usual_socket(environ, str(plain)) == usual
    assert find_usual_socket(environ | {"MEMORYD_CONFIG": str(plain)}) == usual
    assert find_usual_socket(environ, str(other)) is None


def test_environment_names_the_socket(tmp_path: Path, environ: dict[str, str], usual: str) -> None:
    for told in listen(tmp_path / "told.sock"):
        assert find_usual_socket(environ | {"MEMORYD_PATHS__SOCKET": told}) == told
    assert find_usual_socket(environ | {"MEMORYD_PATHS__SOCKET": "$HOME/s.sock"}) is None
    assert find_usual_socket(environ | {"MEMORYD_PATHS__SOCKET": "run/memoryd/memoryd.sock"}) is None
    assert find_usual_socket(environ | {"MEMORYD_PATHS__DATA": "/elsewhere"}) is None


def test_where_nobody_listens_the_settings_are_read_and_their_problems_told(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    assert find_usual_socket(environ) is None
    (tmp_path / "run/memoryd").mkdir(parents=True)
    (tmp_path / "run/memoryd/memoryd.sock").write_text("not a socket")
    assert find_usual_socket(environ) is None
