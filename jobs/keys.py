"""Where the key of a remote service comes from. It is read each time it is needed, and kept nowhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryd.store.errors import MemorydError

ReadKey = Callable[[], str]  # raises a MemorydError where the key should be and is not


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """One place where a key may be: a variable, a file or a systemd credential; the first that is named counts."""

    section: str  # of the configuration, for hints: "llm" or "embedder"
    owner: str  # whose key it is, in words
    variable: str = ""
    file: str = ""
    credential: str = ""
    named_by: str = "api_key_file"  # the setting that names a file, for hints

    @property
    def is_named(self) -> bool:
        return bool(self.variable or self.file or self.credential)

    def __str__(self) -> str:
        """The place in words, never the key."""
        if self.variable:
            return f"the variable {self.variable}"
        return self.file if self.file else f"the credential {self.credential}"

    def read(self, environ: Mapping[str, str], refused: type[MemorydError]) -> str:
        """The key. Raises ``refused`` where it is not there, or is none."""
        if self.variable:
            return self._checked(environ.get(self.variable, ""), refused)
        if self.file:
            return self._checked(
                self._text(Path(self.file), f"Correct {self.section}.{self.named_by}.", refused), refused
            )
        hint = (
            f"Give the service LoadCredential={self.credential}:FILE ('systemctl --user edit memoryd'),"
            f" or use {self.section}.{self.named_by}."
        )
        folder = environ.get("CREDENTIALS_DIRECTORY", "")
        if not folder:
            raise refused(f"memoryd was started without credentials, so there is no {self.credential}", hint=hint)
        return self._checked(self._text(Path(folder) / self.credential, hint, refused), refused)

    def holds_key(self, environ: Mapping[str, str]) -> bool:
        try:
            self.read(environ, MemorydError)
        except MemorydError:
            return False
        return True

    def reader(self, environ: Mapping[str, str], refused: type[MemorydError]) -> ReadKey | None:
        """How the key is come by; None where no place is named."""
        return (lambda: self.read(environ, refused)) if self.is_named else None

    def _text(self, file: Path, hint: str, refused: type[MemorydError]) -> str:
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise refused(f"the key of {self.owner} cannot be read from {file}: {reason}", hint=hint) from None

    def _checked(self, text: str, refused: type[MemorydError]) -> str:
        key = text.strip()
        if not key or not key.isascii() or not key.isprintable() or " " in key:
            hint = "Set it where memoryd is started, or name another."
            raise refused(f"{self} holds no key for {self.owner}", hint=hint)
        return key
