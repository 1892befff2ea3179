"""How the daemon speaks: structlog on stderr, pretty on a terminal and JSON lines elsewhere.

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
    terminal = stream.isatty()
    pretty = format == "console" or (format == "auto" and terminal)
    common: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    if not include_text:
        common.append(hide_text)
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
    logging.basicConfig(handlers=[handler], level=max(threshold, logging.WARNING), force=True)
    logging.captureWarnings(True)


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
