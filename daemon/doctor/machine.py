"""The machine and the interpreter: SQLite, text encoding, clock, and the processor that llama.cpp was built for."""

from __future__ import annotations

import locale
import os
import re
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from memoryd.daemon.doctor.finding import Finding, ok, problem, warning

_UTF8 = {"utf-8", "utf8"}
_DAY_S = 86_400
_OLDEST_SQLITE = (3, 34, 0)  # the first with the trigram tokenizer
# llama.cpp's names and /proc/cpuinfo's; the rest of llama.cpp's are choices of its own, not instructions.
_FEATURES = {
    "SSE3": "pni",
    "SSSE3": "ssse3",
    "AVX": "avx",
    "AVX2": "avx2",
    "F16C": "f16c",
    "FMA": "fma",
    "BMI2": "bmi2",
    "AVX_VNNI": "avx_vnni",
    "AVX512": "avx512f",
    "AVX512_VBMI": "avx512vbmi",
    "AVX512_VNNI": "avx512_vnni",
    "AVX512_BF16": "avx512_bf16",
    "AMX_INT8": "amx_int8",
}
_WANTED = {"AVX2", "FMA", "F16C"}  # without these, embedding takes several times as long
_REBUILD = "pip install --force-reinstall --no-cache-dir --no-binary llama-cpp-python llama-cpp-python"
_ASK_LLAMA = "from memoryd.jobs.llama_library import system_info; print(system_info())"


@dataclass(frozen=True, slots=True)
class MachineFacts:
    sqlite: str  # version
    trigram_error: str | None  # why no trigram table can be made
    file_names: str  # encoding
    output: str  # encoding
    now: float
    program_date: float  # when this program's files were written: it cannot be earlier than that
    processor: frozenset[str]  # flags of /proc/cpuinfo
    llama: str | None  # what llama.cpp says it was built for
    llama_error: str | None


def gather_machine() -> MachineFacts:
    llama, llama_error = _ask_llama()
    return MachineFacts(
        sqlite=sqlite3.sqlite_version,
        trigram_error=_try_trigram(),
        file_names=sys.getfilesystemencoding(),
        output=sys.stdout.encoding or locale.getpreferredencoding(do_setlocale=False),
        now=time.time(),
        program_date=Path(__file__).stat().st_mtime,
        processor=_processor_flags(),
        llama=llama,
        llama_error=llama_error,
    )


def check_sqlite(facts: MachineFacts) -> Finding:
    version = tuple(int(part) for part in facts.sqlite.split("."))
    if version < _OLDEST_SQLITE or facts.trigram_error:
        why = facts.trigram_error or "3.34 is the first with the trigram index"
        return problem("sqlite", f"SQLite {facts.sqlite} will not do: {why}", "Use a Python built with a newer SQLite")
    return ok("sqlite", f"SQLite {facts.sqlite} with FTS5 and trigrams")


def check_locale(facts: MachineFacts) -> Finding:
    fix = "export LANG=C.UTF-8 (and unset LC_ALL, PYTHONUTF8 and PYTHONIOENCODING), then restart memoryd"
    if facts.file_names.lower() not in _UTF8:
        return problem("locale", f"file names are taken for {facts.file_names}, not UTF-8", fix)
    if facts.output.lower() not in _UTF8:
        return warning("locale", f"output is written as {facts.output}: some notes cannot be printed", fix)
    return ok("locale", "UTF-8")


def check_clock(facts: MachineFacts) -> Finding:
    if facts.now < facts.program_date - _DAY_S:
        behind = (facts.program_date - facts.now) / _DAY_S
        return problem(
            "clock",
            f"the clock says {time.strftime('%Y-%m-%d', time.localtime(facts.now))}, {behind:,.0f} days before this "
            "program was installed: ages of notes would be wrong",
            "sudo timedatectl set-ntp true",
        )
    return ok("clock", time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(facts.now)))


def check_processor(facts: MachineFacts) -> Finding:
    if facts.llama is None:
        return problem("processor", f"llama.cpp cannot be used: {facts.llama_error}", _REBUILD)
    built = {name for name, value in re.findall(r"(\w+) = (\d+)", facts.llama) if value != "0" and name in _FEATURES}
    if not facts.processor:
        return ok("processor", "llama.cpp runs; what this processor can do is not told")
    lacking = sorted(name for name in built if _FEATURES[name] not in facts.processor)
    if lacking:
        return problem(
            "processor", f"llama.cpp was built for {', '.join(lacking)}, which this processor does not have", _REBUILD
        )
    unused = sorted(name for name in _WANTED - built if _FEATURES[name] in facts.processor)
    if unused:
        return warning("processor", f"llama.cpp makes no use of {', '.join(unused)}: embedding is slow", _REBUILD)
    return ok("processor", f"llama.cpp was built for it ({', '.join(sorted(built)) or 'no extensions'})")


def _try_trigram() -> str | None:
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE probe USING fts5 (text, tokenize = 'trigram')")
    except sqlite3.Error as error:
        return str(error)
    finally:
        connection.close()
    return None


def _processor_flags() -> frozenset[str]:
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    found = re.search(r"^flags\s*:(.*)$", told, re.MULTILINE)
    return frozenset(found[1].split()) if found else frozenset()


def _ask_llama() -> tuple[str | None, str | None]:
    """In a process of its own: a library built for another processor ends the one that loads it."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _ASK_LLAMA],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    if done.returncode < 0:
        return None, f"it died of signal {-done.returncode}"
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or ["it failed"])[-1]
    return done.stdout.strip(), None
