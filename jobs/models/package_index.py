"""Where a wheel can be fetched from: the package index that pip or uv would use here."""

from __future__ import annotations

import configparser
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from memoryd.jobs.models.catalogue import WheelOrigin
from memoryd.jobs.models.transport import (
    Pause,
    check_status,
    open_client,
    parse_address,
    raise_for,
    with_retries,
)
from memoryd.store.errors import DownloadFailed

if TYPE_CHECKING:
    import httpx

PUBLIC_INDEX: Final = "https://pypi.org/simple/"
_ACCEPT: Final = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"


def find_wheel(origin: WheelOrigin, indexes: Sequence[str] | None = None, *, pause: Pause = time.sleep) -> str:
    """The wheel's URL, with the index's credentials where the wheel lies on the same host."""
    failures: list[str] = []
    with open_client() as client:
        for index in index_urls() if indexes is None else indexes:
            try:
                url = _find_in(client, index, origin, pause)
            except DownloadFailed as error:
                failures.append(error.message)
                continue
            if url is not None:
                return url
            failures.append(f"{parse_address(index).shown} has no {origin.wheel.name}")
    raise DownloadFailed("; ".join(failures), hint="Set PIP_INDEX_URL to an index that mirrors pypi.org.")


def index_urls(
    environment: Mapping[str, str] = os.environ, config_files: Sequence[Path] | None = None
) -> tuple[str, ...]:
    """The configured index, then the extra ones; the public index where nothing is configured."""
    files = pip_config_files(environment) if config_files is None else config_files
    configured = _read_pip_config(files)
    primary = (
        environment.get("PIP_INDEX_URL")
        or environment.get("UV_DEFAULT_INDEX")
        or environment.get("UV_INDEX_URL")
        or configured.get("index-url")
        or PUBLIC_INDEX
    )
    extra = environment.get("PIP_EXTRA_INDEX_URL") or configured.get("extra-index-url") or ""
    # uv lets an index carry a name: "name=https://...".
    named = primary.partition("=")
    if "://" not in named[0]:
        primary = named[2] or primary
    return tuple(dict.fromkeys((primary.strip(), *extra.split())))


def pip_config_files(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """The files that pip reads, the weakest first."""
    override = environment.get("PIP_CONFIG_FILE")
    if override == os.devnull:
        return ()
    home = Path(environment.get("HOME") or "~").expanduser()
    shared = environment.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    own = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    return (
        *(Path(folder) / "pip/pip.conf" for folder in reversed(shared.split(":")) if folder),
        Path("/etc/pip.conf"),
        home / ".pip/pip.conf",
        own / "pip/pip.conf",
        Path(environment.get("VIRTUAL_ENV") or sys.prefix) / "pip.conf",
        *((Path(override),) if override else ()),
    )


def _read_pip_config(files: Sequence[Path]) -> dict[str, str]:
    values: dict[str, str] = {}
    for path in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue  # pip itself complains about it; here the next file counts
        for section in ("global", "install", "download"):
            if parser.has_section(section):
                values.update(
                    (key, value)
                    for key, value in parser.items(section)
                    if key in ("index-url", "extra-index-url") and value
                )
    return values


def _find_in(client: httpx.Client, index: str, origin: WheelOrigin, pause: Pause) -> str | None:
    page = with_retries(lambda: _fetch(client, index, origin.project), lambda: 0, pause)
    for name, url in _links(page):
        if name == origin.wheel.name:
            return _with_credentials(urljoin(str(page.url), url), index)
    return None


def _fetch(client: httpx.Client, index: str, project: str) -> httpx.Response:
    import httpx

    address = parse_address(f"{index.rstrip('/')}/{project}/")
    auth = httpx.BasicAuth(*address.auth) if address.auth else None
    try:
        response = client.get(address.url, headers={"Accept": _ACCEPT}, auth=auth)
    except httpx.HTTPError as error:
        raise_for(error, address)
    check_status(response, address)
    return response


def _links(page: httpx.Response) -> Iterator[tuple[str, str]]:
    """(file name, URL) of every file on the page, whichever of the two forms the index speaks."""
    if "json" in page.headers.get("Content-Type", ""):
        try:
            yield from [(str(file["filename"]), str(file["url"])) for file in page.json()["files"]]
        except (ValueError, KeyError, TypeError) as error:
            raise DownloadFailed(f"{page.url.copy_with(query=None)} is not a package index's page") from error
        return
    anchors = _Anchors()
    anchors.feed(page.text)
    for url in anchors.urls:
        yield unquote(urlsplit(url).path.rpartition("/")[2]), url


class _Anchors(HTMLParser):
    """The links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.urls.extend(value for key, value in attrs if key == "href" and value)


def _with_credentials(url: str, index: str) -> str:
    wheel, home = urlsplit(url), urlsplit(index)
    credentials, at, host = home.netloc.rpartition("@")
    if at and wheel.netloc == host and wheel.scheme == home.scheme:
        return urlunsplit(wheel._replace(netloc=f"{credentials}@{host}", fragment=""))
    return urlunsplit(wheel._replace(fragment=""))
