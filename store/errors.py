"""Every error that a person or a program can meet: its code, whether to try again, and the remedy.

A library's exception is wrapped at its fence with ``raise ... from``. Errors are returned up to where policy
lives (the worker, the method dispatcher, the command line) and reported there once.
"""

from __future__ import annotations

from collections.abc import Iterator

TYPE_CHECKING = False  # a client that only asks need not load these
if TYPE_CHECKING:
    from pathlib import Path
    from typing import ClassVar


class MemorydError(Exception):
    """Something went wrong that memoryd did not foresee."""

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        self.message = message or (self.__doc__ or "").strip().splitlines()[0]
        self.hint = hint
        super().__init__(self.message)


class ConfigInvalid(MemorydError):
    """The configuration has problems."""

    code = "config_invalid"

    def __init__(self, problems: tuple[str, ...], *, hint: str | None = None) -> None:
        self.problems = problems
        super().__init__("\n".join(problems), hint=hint)


class NotRunning(MemorydError):
    """No memoryd daemon is listening."""

    code = "not_running"


class AlreadyRunning(MemorydError):
    """Another memoryd daemon has this data folder."""

    code = "already_running"


class ServiceUnavailable(MemorydError):
    """There is no service manager that would run memoryd for this user."""

    code = "service_unavailable"


class ServiceFailed(MemorydError):
    """The service manager did not do what it was asked to."""

    code = "service_failed"


class WorkspaceUnavailable(MemorydError):
    """A workspace's folder cannot be read."""

    code = "workspace_unavailable"
    retryable = True


class FileUnreadable(MemorydError):
    """A file cannot be read."""

    code = "file_unreadable"
    retryable = True


class NotFound(MemorydError):
    """There is no such document."""

    code = "not_found"


class PathRefused(MemorydError):
    """The path is not inside a workspace."""

    code = "path_refused"


class InvalidParams(MemorydError):
    """A parameter is missing, unknown or of the wrong kind."""

    code = "invalid_params"


class RequestTooLarge(MemorydError):
    """The request is larger than the server reads."""

    code = "request_too_large"


class AnswerTooLarge(MemorydError):
    """The answer is larger than the server sends in one go."""

    code = "answer_too_large"


class FramingInvalid(MemorydError):
    """Where a message ends cannot be told."""

    code = "framing_invalid"


class Cancelled(MemorydError):
    """The client does not want the answer any more."""

    code = "cancelled"


class Busy(MemorydError):
    """The server has as much work as it takes on."""

    code = "busy"
    retryable = True


class TimedOut(MemorydError):
    """The work took longer than its limit."""

    code = "timed_out"
    retryable = True


class ModelMissing(MemorydError):
    """A model's file is not there."""

    code = "model_missing"


class ModelCorrupt(MemorydError):
    """A model's file is damaged, or not of the kind that is needed."""

    code = "model_corrupt"


class DownloadFailed(MemorydError):
    """A download failed."""

    code = "download_failed"
    retryable = True


class DownloadRefused(DownloadFailed):
    """A server does not give out what was asked for."""

    code = "download_refused"
    retryable = False


class ChecksumMismatch(MemorydError):
    """A downloaded file is not the one that was published."""

    code = "checksum_mismatch"


class EmbedderUnavailable(MemorydError):
    """The embedder cannot answer now."""

    code = "embedder_unavailable"
    retryable = True


class RerankerUnavailable(MemorydError):
    """The reranker cannot answer now."""

    code = "reranker_unavailable"
    retryable = True


class EmbedderRefused(MemorydError):
    """The embedding provider does not do what was asked, and would not the next time."""

    code = "embedder_refused"


class ProviderUnavailable(EmbedderUnavailable):
    """The embedding provider cannot be asked now; the work waits for it."""

    code = "provider_unavailable"


class LanguageModelMissing(MemorydError):
    """No language model is configured."""

    code = "language_model_missing"


class LanguageModelUnavailable(MemorydError):
    """The language model cannot answer now."""

    code = "language_model_unavailable"
    retryable = True

    def __init__(self, message: str | None = None, *, hint: str | None = None, wait_s: float | None = None) -> None:
        self.wait_s = wait_s  # so long it asks to be left alone; None: it does not say
        super().__init__(message, hint=hint)


class LanguageModelRefused(MemorydError):
    """The language model does not do what was asked, and would not the next time."""

    code = "language_model_refused"


class PromptTooLong(LanguageModelRefused):
    """What the language model was asked is more than it reads at a time."""

    code = "prompt_too_long"


class BudgetSpent(MemorydError):
    """What may be spent in a day is spent."""

    code = "budget_spent"


class StoreFull(MemorydError):
    """The disk that holds the index is full."""

    code = "store_full"
    retryable = True


class StoreUnavailable(MemorydError):
    """A store cannot be opened, read or written now."""

    code = "store_unavailable"
    retryable = True


class VectorsAway(StoreUnavailable):
    """The vectors are kept far away, and cannot be reached or are refused there; the work waits for them."""

    code = "vectors_away"

    def __init__(self, message: str | None = None, *, hint: str | None = None, lasting: bool = False) -> None:
        self.lasting = lasting  # trying again changes nothing until a person does
        super().__init__(message, hint=hint)


class StoreCorrupt(MemorydError):
    """A store's files are damaged."""

    code = "store_corrupt"
    retryable = True  # what is damaged is put aside and rebuilt

    def __init__(self, message: str | None = None, *, hint: str | None = None, path: Path | None = None) -> None:
        self.path = path  # of what is damaged: a database's file, a table's folder
        super().__init__(message, hint=hint)


class SchemaTooNew(MemorydError):
    """The index was written by a newer memoryd."""

    code = "schema_too_new"


def all_errors(root: type[MemorydError] = MemorydError) -> Iterator[type[MemorydError]]:
    """Every kind of error there is, the root left out."""
    for kind in root.__subclasses__():
        yield kind
        yield from all_errors(kind)
