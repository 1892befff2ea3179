"""llama.cpp as a library, loaded late and once, for the embedder and the local language model alike."""

from __future__ import annotations

import atexit
import ctypes
import os
import re
import threading
from collections import deque
from pathlib import Path
from typing import Any, Final

from memoryd.jobs.native_memory import trim_heap
from memoryd.store.errors import ModelCorrupt

_WARNING: Final = 3  # ggml's log levels; 2 is information
_ERROR: Final = 4

_CPUINFO: Final = Path("/proc/cpuinfo")

_complaints: deque[str] = deque(maxlen=8)
_loading = threading.Lock()  # an embedder and a language model may be the first at the same time
_log_callback: Any = None  # llama.cpp keeps the bare pointer: this reference keeps the function alive


def load_llama() -> Any:
    """The library, with its log kept for error messages instead of written to stderr."""
    import llama_cpp

    with _loading:
        if _log_callback is None:
            _begin(llama_cpp)
    return llama_cpp


def _begin(llama_cpp: Any) -> None:
    global _log_callback

    def keep_complaint(level: int, text: bytes, _: object) -> None:
        if level in (_WARNING, _ERROR) and text:
            _complaints.append(text.decode("utf-8", "replace").strip())

    _log_callback = llama_cpp.llama_log_callback(keep_complaint)
    llama_cpp.llama_log_set(_log_callback, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    for name in ("outnull_file", "errnull_file"):  # the package opens them for itself, and closes them never
        if file := getattr(getattr(llama_cpp, "_utils", None), name, None):
            atexit.register(file.close)


def load_model(path: Path, *, quantized: bool, hint: str, mapped: bool = True) -> Any:
    """A model in memory, to be given to ``free_model``. Raises ``ModelCorrupt`` with what llama.cpp complained of."""
    llama = load_llama()
    forget_complaints()
    parameters = llama.llama_model_default_params()
    parameters.n_gpu_layers = 0
    # Kernels for repacked weights take a tenth less time. Those for quantised ones die of an illegal
    # instruction on virtual machines that announce AMX and do not grant it.
    parameters.use_extra_bufts = not quantized
    # A file that is mapped and then changed changes the model: at best the process dies, at worst it makes vectors
    # that mean nothing, and keeps them.
    if not mapped and hasattr(llama, "LLAMA_LOAD_MODE_NONE"):
        parameters.load_mode = llama.LLAMA_LOAD_MODE_NONE
    elif not mapped:  # as older versions have it
        parameters.use_mmap = False
    model = llama.llama_model_load_from_file(os.fsencode(path), parameters)
    if model is None:
        raise ModelCorrupt(f"llama.cpp cannot load {path}{complained()}", hint=hint)
    return model


def free_model(model: Any, *contexts: Any) -> None:
    """Give back their memory, as far as there is any."""
    llama = load_llama()
    for context in contexts:
        if context is not None:
            llama.llama_free(context)
    if model is not None:
        llama.llama_model_free(model)
        trim_heap()


def forget_complaints() -> None:
    """Before a call whose complaints are wanted."""
    _complaints.clear()


def complained() -> str:
    """What llama.cpp said was wrong, ready to stand behind a message; empty if nothing."""
    return ": " + "; ".join(_complaints) if _complaints else ""


def keeping_lock(function: Any) -> Any:
    """One of the library's functions, called without letting go of Python's lock.

    For calls of microseconds: whoever lets go has to wait until the thread that took the lock gives it back, and a
    query whose words are looked up meanwhile waits for that longer than for its tokens.
    """
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    return ctypes.PYFUNCTYPE(function.restype, *function.argtypes)(address)


def default_threads() -> int:
    """Threads for one pass: the texts are short and gain little from more."""
    return min(4, len(os.sched_getaffinity(0)))


def threads_beside(threads: int) -> int:
    """Of so many threads those for a question, which leave a core to its words."""
    return _threads_beside(threads, len(os.sched_getaffinity(0)), virtual=is_virtual(_CPUINFO))


def _threads_beside(threads: int, cores: int, *, virtual: bool) -> int:
    """On a virtual machine one: the others sleep between two questions, and Linux wakes them on the core of the first
    (``store.companions``). There two threads take five times as long as one."""
    return 1 if virtual else max(1, min(threads, cores - 1))


def is_virtual(cpuinfo: Path) -> bool:
    """Whether this is a virtual machine, as far as x86 tells; of others it is not known."""
    try:
        told = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return re.search(r"^flags\b.*\bhypervisor\b", told, re.MULTILINE) is not None


def system_info() -> str:
    """What llama.cpp was built for, in its own words: ``AVX = 1 | AVX2 = 1 | …``."""
    told: bytes = load_llama().llama_print_system_info()
    return told.decode("utf-8", "replace")
