"""What is true of the llama.cpp embedder beyond the contract."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from memoryd.jobs.embedders.llama import LlamaEmbedder
from memoryd.store.errors import EmbedderUnavailable
from memoryd.store.interruption import Interruption
from memoryd.store.protocols import Vectors


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)


def test_importing_the_module_does_not_load_llama(default_model: Path) -> None:
    done = run_python(
        "import sys, memoryd.jobs.embedders.llama, memoryd.jobs.models.install;"
        "print([name for name in ('llama_cpp', 'gguf', 'httpx', 'safetensors') if name in sys.modules])"
    )
    assert done.stdout.strip() == "[]"


def test_llama_s_chatter_stays_out_of_the_streams(default_model: Path, tmp_path: Path) -> None:
    done = run_python(
        "import sys; from pathlib import Path\n"
        "from memoryd.jobs.embedders.llama import LlamaEmbedder\n"
        "embedder = LlamaEmbedder(Path(sys.argv[1])); embedder.embed_documents(['a', 'b' * 9999]); embedder.close()",
        str(default_model),
    )
    assert done.stdout + done.stderr == ""


def test_fingerprint_follows_everything_that_changes_vectors(default_model: Path) -> None:
    settings: list[dict[str, str]] = [
        {},
        {"query_prefix": "query: "},
        {"document_prefix": "query: "},
        {"text_version": "2"},
    ]
    fingerprints = []
    for setting in settings:
        embedder = LlamaEmbedder(default_model, **setting)  # type: ignore[arg-type]
        fingerprints.append(embedder.identity.fingerprint)
        embedder.close()
    assert len(set(fingerprints)) == len(settings)
    again = LlamaEmbedder(default_model, name="shown", threads=1)
    assert again.identity.fingerprint == fingerprints[0], "names and threads change no vector"
    assert again.identity.model == "shown"
    again.close()


def test_prefixes_are_put_before_the_text(default_model: Path) -> None:
    plain = LlamaEmbedder(default_model)
    prefixed = LlamaEmbedder(default_model, query_prefix="query: ", document_prefix="passage: ")
    assert prefixed.embed_query("tea") @ plain.embed_query("query: tea") == pytest.approx(1, abs=1e-4)
    assert prefixed.embed_documents(["tea"])[0] @ plain.embed_query("passage: tea") == pytest.approx(1, abs=1e-4)
    plain.close()
    prefixed.close()


def test_sentences_are_as_far_apart_as_the_model_s_authors_publish(default_model: Path) -> None:
    embedder = LlamaEmbedder(default_model)
    one, two = embedder.embed_documents(["The cat sits outside", "A man is playing guitar"])
    embedder.close()
    assert one @ two == pytest.approx(0.0363, abs=2e-3)


def test_korean_syllables_keep_their_vowels(default_model: Path) -> None:
    embedder = LlamaEmbedder(default_model)
    han, hun = embedder.embed_documents(["한국", "훈국"])
    embedder.close()
    assert han @ hun < 0.999


def test_small_batches_make_the_same_vectors(default_model: Path) -> None:
    texts = ["short", "a somewhat longer text", "the daemon watches the folder", ""] * 9
    usual, small = LlamaEmbedder(default_model), LlamaEmbedder(default_model, batch_tokens=32, threads=2)
    agreement = np.sum(usual.embed_documents(texts) * small.embed_documents(texts), axis=1)
    assert agreement.min() > 1 - 1e-3
    assert small.embed_documents(["long " * 500]).shape == (1, 384)
    usual.close()
    small.close()


def test_a_pass_is_let_go_of_in_the_middle(default_model: Path) -> None:
    embedder = LlamaEmbedder(default_model)
    text = "the boat is green and lies at the pier " * 60  # as long as a pass can be: it is one
    before = embedder.embed_documents([text])

    def embed_for_a_while() -> Vectors | None:
        interruption = Interruption()
        soon = threading.Timer(0.005, interruption.wish)
        soon.start()
        try:
            return embedder.embed_or_yield([text], interruption)
        finally:
            soon.join()

    # A machine that is stopped for a moment may not be interrupted in time; not twenty times.
    assert any(embed_for_a_while() is None for _ in range(20))
    assert embedder.embed_documents([text]) == pytest.approx(before), "what comes next is not touched by it"
    embedder.close()


def test_a_closed_model_cannot_be_let_go_of(default_model: Path) -> None:
    embedder = LlamaEmbedder(default_model)
    embedder.close()
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_or_yield(["tea"], Interruption())


def test_long_texts_cost_no_memory_that_stays(default_model: Path) -> None:
    done = run_python(
        "import sys; from pathlib import Path\n"
        "from memoryd.jobs.embedders.llama import LlamaEmbedder\n"
        "def resident():\n"
        "    line = next(l for l in open('/proc/self/status') if l.startswith('RssAnon'))\n"
        "    return int(line.split()[1])\n"
        "embedder = LlamaEmbedder(Path(sys.argv[1])); before = resident()\n"
        "embedder.embed_documents(['word ' * 600] * 3); print(resident() - before)",
        str(default_model),
    )
    assert int(done.stdout) < 30_000, "kibibytes; the table of logits alone would be 60,000"


def test_closing_gives_the_memory_back(default_model: Path) -> None:
    done = run_python(
        "import sys; from pathlib import Path\n"
        "from memoryd.jobs.embedders.llama import LlamaEmbedder\n"
        "def resident():\n"
        "    line = next(l for l in open('/proc/self/status') if l.startswith('RssAnon'))\n"
        "    return int(line.split()[1])\n"
        "def once():\n"
        "    embedder = LlamaEmbedder(Path(sys.argv[1])); embedder.embed_query('x'); embedder.close()\n"
        "once(); before = resident()\n"
        "for _ in range(5): once()\n"
        "print(resident() - before)",
        str(default_model),
    )
    assert int(done.stdout) < 5_000, "kibibytes kept after five more models were opened and closed"


def test_vectors_outlive_the_next_call_and_the_model(default_model: Path) -> None:
    embedder = LlamaEmbedder(default_model)
    vector = embedder.embed_query("first")
    kept = vector.copy()
    embedder.embed_query("second")
    embedder.close()
    assert np.array_equal(vector, kept)


def test_library_leaves_no_file_open_at_the_end() -> None:
    words = ["-W", "error", "-c", "from memoryd.jobs.llama_library import load_llama; load_llama()"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", [1, 20, 61, 62, 90])
def test_text_means_the_same_however_long_the_pass_is_that_it_shares(default_model: Path, words: int) -> None:
    embedder, text = LlamaEmbedder(default_model), " ".join(["boat", "tree", "house"] * 30)[: 5 * words]
    alone = embedder.embed_query(text)
    together = embedder.embed_documents([text, "another text of some length " * 20])[0]
    embedder.close()
    assert float(alone @ together) > 0.9999
