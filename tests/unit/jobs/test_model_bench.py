from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memoryd.jobs.model_bench import MOST_PASSAGES, Exam, difference, read_notes, set_exam, sit_exam
from memoryd.jobs.workspace import Workspace
from tests.support.fake_embedder import FakeEmbedder

# Each has words of its own, in three sentences.
WORDS = [[f"{stem}{number}" for stem in ("keeper", "tower", "lamp", "horn", "ship")] for number in range(30)]
NOTES = [f"{' '.join(words)}. {' '.join(words[::-1])}! {' '.join(words[2:] + words[:2])}?" for words in WORDS]


@given(st.lists(st.text(max_size=200), max_size=30))
def test_any_passages_make_an_exam(passages: list[str]) -> None:
    exam = set_exam(passages)
    assert len(exam.passages) == min(len(set(passages)), MOST_PASSAGES)
    assert all(0 <= cloze.place < len(exam.passages) for cloze in exam.questions)
    assert exam == set_exam(passages), "the same each time"


def test_a_question_is_no_longer_in_its_passage() -> None:
    exam = set_exam(NOTES)
    assert len(exam.questions) == len(NOTES)
    for cloze in exam.questions:
        assert cloze.question not in exam.passages[cloze.place]
        assert sum(cloze.question in note for note in NOTES) == 1


def test_of_two_models_the_better_one_finds_more() -> None:
    class Blind(FakeEmbedder):
        def embed_query(self, text: str) -> np.ndarray:  # type: ignore[type-arg]
            return super().embed_query("nothing of the kind")

    exam = set_exam(NOTES)
    seeing, blind = sit_exam(FakeEmbedder(), exam), sit_exam(Blind(), exam)
    assert seeing.found_in_ten > blind.found_in_ten
    assert seeing.passages_per_s > 0
    change, low, high = difference(blind, seeing)
    assert low <= change <= high
    assert change == seeing.found_first - blind.found_first


def test_without_notes_nothing_is_claimed() -> None:
    result = sit_exam(FakeEmbedder(), Exam((), ()))
    assert (result.found_first, result.mrr, result.query_ms) == (0.0, 0.0, 0.0)
    assert difference(result, result) == (0.0, 0.0, 0.0)


def test_notes_are_read_as_indexing_reads_them(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/a.md").write_text("# One\n\nThe first note.\n")
    (tmp_path / "memory/b.md").write_bytes(b"\xff\xfe\x00binary\x00")
    (tmp_path / "other.md").write_text("Not included.\n")
    found = read_notes([Workspace("w", tmp_path, ("memory/*.md",))], 10_000)
    assert "The first note" in "".join(found)
    assert "Not included" not in "".join(found)
