"""Which package index is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.jobs.models.package_index import PUBLIC_INDEX, index_urls, pip_config_files


@pytest.fixture
def pip_conf(tmp_path: Path) -> Path:
    path = tmp_path / "pip.conf"
    path.write_text(
        "[global]\nindex-url = https://a.example/simple\nextra-index-url =\n  https://b.example\n  https://c.example\n"
    )
    return path


def test_nothing_configured_means_the_public_index() -> None:
    assert index_urls({}, []) == (PUBLIC_INDEX,)


def test_pip_s_file_is_read(pip_conf: Path) -> None:
    assert index_urls({}, [pip_conf]) == ("https://a.example/simple", "https://b.example", "https://c.example")


def test_later_file_and_section_win(pip_conf: Path, tmp_path: Path) -> None:
    later = tmp_path / "later.conf"
    later.write_text("[global]\nindex-url = https://x.example\n[download]\nindex-url = https://y.example\n")
    assert index_urls({}, [pip_conf, later])[0] == "https://y.example"


@pytest.mark.parametrize("variable", ["PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"])
def test_environment_wins_over_files(pip_conf: Path, variable: str) -> None:
    assert index_urls({variable: "https://env.example/"}, [pip_conf])[0] == "https://env.example/"


def test_named_uv_index_loses_its_name() -> None:
    assert index_urls({"UV_DEFAULT_INDEX": "mirror=https://u:p=1@m.example/simple"}, []) == (
        "https://u:p=1@m.example/simple",
    )


def test_same_index_is_asked_once() -> None:
    environment = {"PIP_INDEX_URL": "https://a.example", "PIP_EXTRA_INDEX_URL": "https://a.example https://b.example"}
    assert index_urls(environment, []) == ("https://a.example", "https://b.example")


def test_damaged_and_missing_files_are_passed_over(pip_conf: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.conf"
    damaged.write_bytes(b"no section\n\xff\xfe")
    assert index_urls({}, [tmp_path / "none", damaged, pip_conf])[0] == "https://a.example/simple"


def test_files_are_those_of_pip_the_weakest_first() -> None:
    environment = {"HOME": "/home/ana", "VIRTUAL_ENV": "/venv", "PIP_CONFIG_FILE": "/own.conf"}
    assert [str(path) for path in pip_config_files(environment)] == [
        "/etc/xdg/pip/pip.conf",
        "/etc/pip.conf",
        "/home/ana/.pip/pip.conf",
        "/home/ana/.config/pip/pip.conf",
        "/venv/pip.conf",
        "/own.conf",
    ]


def test_pip_s_way_to_read_no_files_is_honoured() -> None:
    assert pip_config_files({"PIP_CONFIG_FILE": "/dev/null"}) == ()
