"""What the daemon says, where, and what it keeps to itself."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog

from memoryd.daemon.logs import configure_logs


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Logging is the process's; other tests get it back as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()  # pytest's own stay open
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_pipe_gets_json_lines_with_utc_time() -> None:
    stream = io.StringIO()
    configure_logs("info", "auto", stream)
    structlog.get_logger().info("document_indexed", path="memory/日记.md", chunks=3)
    (line,) = lines(stream)
    moment = datetime.fromisoformat(line.pop("timestamp"))
    assert moment.tzinfo == UTC
    assert line == {"event": "document_indexed", "level": "info", "path": "memory/日记.md", "chunks": 3}


def test_a_terminal_gets_text_for_people() -> None:
    stream = Terminal()
    configure_logs("info", "auto", stream)
    structlog.get_logger().info("document_indexed", path="a.md")
    assert "document_indexed" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for stream, coloured in ((Terminal(), True), (io.StringIO(), False)):
        configure_logs("info", "console", stream)
        structlog.get_logger().info("started")
        assert ("\x1b[" in stream.getvalue()) is coloured
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    configure_logs("info", "console", stream)
    structlog.get_logger().info("started")
    assert "\x1b[" not in stream.getvalue()


def test_level_is_respected() -> None:
    stream = io.StringIO()
    configure_logs("warning", "json", stream)
    log = structlog.get_logger()
    log.info("quiet")
    log.warning("loud")
    assert [line["event"] for line in lines(stream)] == ["loud"]


def test_libraries_are_heard_from_warning_on_even_while_debugging() -> None:
    stream = io.StringIO()
    configure_logs("debug", "json", stream)
    logging.getLogger("library").info("chatter")
    logging.getLogger("library").warning("trouble with %s", "x")
    (line,) = lines(stream)
    assert (line["event"], line["level"], line["logger"]) == ("trouble with x", "warning", "library")


def test_python_warnings_become_log_lines() -> None:
    stream = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        configure_logs("info", "json", stream)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        logging.captureWarnings(False)
    (line,) = lines(stream)
    assert line["logger"] == "py.warnings"


def test_note_text_never_reaches_the_log() -> None:
    stream = io.StringIO()
    configure_logs("info", "json", stream)
    structlog.get_logger().info(
        "answered", query="my secret", hits=[{"path": "a.md", "snippet": "my secret"}], text=None
    )
    (line,) = lines(stream)
    assert "my secret" not in stream.getvalue()
    assert line["query"] == "<9 characters>"
    assert line["hits"] == [{"path": "a.md", "snippet": "<9 characters>"}]
    assert line["text"] is None


def test_note_text_is_shown_when_asked_for() -> None:
    stream = io.StringIO()
    configure_logs("info", "json", stream, include_text=True)
    structlog.get_logger().info("answered", query="my words")
    assert lines(stream)[0]["query"] == "my words"


@pytest.mark.parametrize("format", ["json", "console"])
def test_traceback_shows_no_local_variables(format: str) -> None:
    stream = io.StringIO()
    configure_logs("info", format, stream)

    def fail(note: str) -> None:
        raise LookupError("no such thing")

    try:
        fail("my " + "secret")
    except LookupError:
        structlog.get_logger().exception("job_failed")
    assert "LookupError: no such thing" in stream.getvalue()
    assert "my secret" not in stream.getvalue()


def test_what_is_bound_around_a_job_is_on_its_lines() -> None:
    stream = io.StringIO()
    configure_logs("info", "json", stream)
    with structlog.contextvars.bound_contextvars(job="index:notes:a.md"):
        structlog.get_logger().info("inside")
    structlog.get_logger().info("outside")
    assert [line.get("job") for line in lines(stream)] == ["index:notes:a.md", None]


def test_reader_that_went_away_does_not_end_the_daemon() -> None:
    configure_logs("info", "json", Broken())
    structlog.get_logger().info("unheard")
    logging.getLogger("library").warning("unheard")


def test_value_that_is_not_json_is_no_error() -> None:
    stream = io.StringIO()
    configure_logs("info", "json", stream)
    structlog.get_logger().info("odd", value={1, 2}, name="\udc80")
    assert lines(stream)[0]["event"] == "odd"


def test_importing_configuration_and_logs_stays_light() -> None:
    heavy = ["structlog", "tomllib", "difflib", "platformdirs", "asyncio", "numpy", "rich", "pydantic"]
    code = (
        "import sys, pathlib, memoryd.daemon.config_file, memoryd.daemon.paths, memoryd.daemon.logs\n"
        "c = memoryd.daemon.config_file.load_config(None, {'HOME': '/nonexistent'}, pathlib.Path('/'))\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
