"""llama.cpp alone: the same model on the same passages, in a process of its own, as fast as it goes.

``RawModel`` talks to that process; run as a program, this file is that process: a line with texts in, a line with the
seconds that they took out. Each setting has its own process because threads, once started, stay.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from memoryd.jobs.llama_library import default_threads

WEIGHTS = {"F32": 0, "Q8_0": 7, "BF16": 32}  # llama.cpp's numbers of file types
BRIEF_SPIN = "1000"  # turns before a thread that waits for the others goes to sleep (libgomp; 30 billion by default)


@dataclass(frozen=True, slots=True)
class Setting:
    """How llama.cpp is run."""

    api: str  # "packed": memoryd's LlamaEmbedder, all texts in one call; "Llama.embed": llama-cpp-python's own
    threads: int
    batch_tokens: int  # tokens of one pass
    flash: bool = True
    brief_spin: bool = False
    weights: str = ""  # "Q8_0" or another of WEIGHTS, made for the run; else as the file has them

    def __str__(self) -> str:
        words = [self.api, f"{self.threads} thread{'s' * (self.threads > 1)}", f"{self.batch_tokens} tokens a pass"]
        words += ["flash attention"] if self.flash else []
        words += ["brief spin"] if self.brief_spin else []
        words += [self.weights] if self.weights else []
        return ", ".join(words)


def settings_to_try() -> list[Setting]:
    cores = len(os.sched_getaffinity(0))
    several = [Setting("packed", cores, 256, brief_spin=brief) for brief in (True, False)]
    several.append(Setting("packed", cores, 256, brief_spin=True, weights="Q8_0"))
    return [
        Setting("packed", 1, 256),
        Setting("packed", 1, 256, weights="Q8_0"),
        *(several if cores > 1 else []),
        Setting("packed", 1, 512),
        Setting("packed", 1, 256, flash=False),
        Setting("Llama.embed", 1, 512),
        *([Setting("Llama.embed", cores, 512, brief_spin=True)] if cores > 1 else []),
    ]


@dataclass(frozen=True, slots=True)
class Run:
    texts: int
    seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        return self.texts / self.seconds


class RawModel:
    """A process with the model loaded and warm."""

    def __init__(self, model: Path, setting: Setting) -> None:
        self.setting = setting
        command = [sys.executable, __file__, str(model), json.dumps(asdict(setting))]
        environment = {**os.environ, "GOMP_SPINCOUNT": BRIEF_SPIN} if setting.brief_spin else None
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self._answer()  # it says when it is ready

    def embed(self, texts: Sequence[str]) -> Run:
        answer = self._ask({"texts": list(texts)})
        return Run(len(texts), answer["seconds"], answer["cpu"])

    def embed_queries(self, texts: Sequence[str]) -> list[float]:
        """Milliseconds that each took, one by one."""
        return list(self._ask({"queries": list(texts)})["ms"])

    def close(self) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(10)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        if not line:
            raise ChildProcessError(f"llama.cpp died with {self._process.wait(10)}: {self.setting}")
        return json.loads(line)


def sum_runs(runs: Sequence[Run]) -> Run:
    return Run(sum(r.texts for r in runs), sum(r.seconds for r in runs), sum(r.cpu_seconds for r in runs))


def find_contenders(model: Path, sample: Sequence[str]) -> tuple[list[Setting], dict[str, float]]:
    """The fastest setting with one thread and the fastest with several, and the texts per second that each gave.

    A few texts tell which settings are hopeless; the others are judged by the better of two runs.
    """
    rates: dict[Setting, float] = {}
    for setting in settings_to_try():
        try:
            raw = RawModel(model, setting)
            rates[setting] = raw.embed(sample[:: len(sample) // 6]).rate
            if rates[setting] > max(rates.values()) / 2:
                rates[setting] = max(raw.embed(sample).rate for _ in range(2))
            raw.close()
        except ChildProcessError:
            rates[setting] = 0.0  # llama.cpp's AMX kernels crash on virtual machines that do not grant AMX
    kinds = ([s for s in rates if s.threads == 1], [s for s in rates if s.threads > 1])
    contenders = [max(kind, key=lambda setting: rates[setting]) for kind in kinds if kind]
    return contenders, {str(setting): round(rate, 1) for setting, rate in rates.items()}


class BareQueries:
    """The model as it embeds single queries fastest: with one thread, or with as many as memoryd gives it.

    Both take each turn, and the quicker one of that turn counts. Which one it is changes with what else the machine
    does: two threads take half the time of one, or twice as much if they have to share a core. Chosen once, the slower
    one might be the limit for a whole run, and everything would look well beside it.
    """

    def __init__(self, model: Path) -> None:
        counts = sorted({1, default_threads()})
        self._raws = [RawModel(model, Setting("packed", threads, 256, brief_spin=True)) for threads in counts]

    def embed_queries(self, texts: Sequence[str]) -> list[float]:
        """Milliseconds that each took, one by one."""
        return min((raw.embed_queries(texts) for raw in self._raws), key=median)

    def embed_after(self, rest_s: float, text: str) -> list[float]:
        """Milliseconds that a query takes each of them after a rest."""
        took = []
        for raw in self._raws:
            time.sleep(rest_s)
            took += raw.embed_queries([text])
        return took

    def close(self) -> None:
        for raw in self._raws:
            raw.close()


def _load(model: Path, setting: Setting) -> tuple[Callable[[list[str]], Any], Callable[[str], Any]]:
    if setting.api == "packed":
        from memoryd.jobs.embedders import llama

        llama.PACK_TOKENS = setting.batch_tokens
        llama.FLASH_ATTENTION = int(setting.flash)
        llama.threads_beside = lambda threads: threads  # a question, too, gets all that the setting says
        embedder = llama.LlamaEmbedder(model, threads=setting.threads, batch_tokens=max(512, setting.batch_tokens))
        return embedder.embed_documents, embedder.embed_query
    from llama_cpp import Llama

    loaded = Llama(
        str(model),
        embedding=True,
        n_ctx=setting.batch_tokens,
        n_batch=setting.batch_tokens,
        n_ubatch=setting.batch_tokens,
        n_threads=setting.threads,
        n_threads_batch=setting.threads,
        flash_attn=setting.flash,
        verbose=False,
    )
    return (lambda texts: loaded.embed(texts, normalize=True)), (lambda text: loaded.embed(text, normalize=True))


def _rewrite(model: Path, weights: str, folder: Path) -> Path:
    """The same model with other weights."""
    import llama_cpp

    other, parameters = folder / "other.gguf", llama_cpp.llama_model_quantize_default_params()
    parameters.ftype = WEIGHTS[weights]
    if llama_cpp.llama_model_quantize(str(model).encode(), str(other).encode(), ctypes.byref(parameters)) != 0:
        raise RuntimeError(f"llama.cpp cannot make {weights} of {model}")
    return other


def main() -> None:
    model, setting = Path(sys.argv[1]), Setting(**json.loads(sys.argv[2]))
    with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as folder:
        if setting.weights:
            model = _rewrite(model, setting.weights, Path(folder))
        embed, embed_query = _load(model, setting)
    embed(["warm up"] * 8)
    print("{}", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "texts" in request:
            began, cpu = time.perf_counter(), time.process_time()
            embed(request["texts"])
            answer: dict[str, Any] = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
        else:
            took = []
            for text in request["queries"]:
                began = time.perf_counter()
                embed_query(text)
                took.append((time.perf_counter() - began) * 1000)
            answer = {"ms": took}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
