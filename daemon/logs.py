"""How the daemon speaks: pretty on a terminal, fields in systemd's journal, JSON lines on stderr elsewhere.

An event is a snake_case fact and its facts are keys. What people wrote in their notes, or asked, does not
belong in a log: such values are replaced by their length.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, TextIO

from memoryd.daemon.journal import JournalLogger, is_journal, render_fields

if TYPE_CHECKING:
    from structlog.typing import Processor

PRIVATE = frozenset({"text", "query", "snippet"})


class SteadyStream:
    """A stream whose reader may go away: a log line that nobody can read must not end the daemon."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


def configure_logs(
    level: str, format: str = "auto", stream: TextIO | None = None, *, include_text: bool = False
) -> None:
    """Sets up structlog, and routes what libraries log through it from warning on."""
    import structlog

    stream = stream or sys.stderr
    threshold = getattr(logging, level.upper())
    if format == "journal" or (format == "auto" and is_journal(stream, os.environ)):
        _configure_journal(threshold, include_text=include_text)
        return
    terminal = stream.isatty()
    pretty = format == "console" or (format == "auto" and terminal)
    common = _common(include_text=include_text)
    rendering: list[Processor] = (
        [
            structlog.dev.ConsoleRenderer(
                colors=terminal and not os.environ.get("NO_COLOR"),
                exception_formatter=structlog.dev.plain_traceback,  # the rich one prints local variables
            )
        ]
        if pretty
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    steady: Any = SteadyStream(stream)
    structlog.configure(
        processors=[*common, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(file=steady),
    )
    handler = logging.StreamHandler(steady)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *common],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    _hear_libraries(handler, threshold)


def _configure_journal(threshold: int, *, include_text: bool) -> None:
    import structlog

    journal = JournalLogger()
    structlog.configure(
        processors=[*_common(include_text=include_text), structlog.processors.format_exc_info, render_fields],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=lambda *_: journal,
    )
    _hear_libraries(_Passing(), threshold)


def _common(*, include_text: bool) -> list[Processor]:
    import structlog

    common: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    return common if include_text else [*common, hide_text]


def _hear_libraries(handler: logging.Handler, threshold: int) -> None:
    logging.basicConfig(handlers=[handler], level=max(threshold, logging.WARNING), force=True)
    logging.captureWarnings(True)


class _Passing(logging.Handler):
    """What a library logs, as an event of our own."""

    def emit(self, record: logging.LogRecord) -> None:
        import structlog

        structlog.get_logger().log(
            record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info or None
        )


def hide_text(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Replaces the values under private keys, at any depth, by their length."""
    return {key: _hidden(key, value) for key, value in event.items()}


def _hidden(key: str, value: Any) -> Any:
    if key in PRIVATE and value is not None:
        return f"<{len(str(value))} characters>"
    if isinstance(value, Mapping):
        return {inner: _hidden(str(inner), each) for inner, each in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden("", each) for each in value]
    return value
