from __future__ import annotations

import pytest

from memoryd.store.generations import Generation, Pending
from memoryd.store.model import EmbedderIdentity, document_id
from tests.support.documents import make_document
from tests.support.ledger import Ledger

A = ("home", "memory/a.md")
B = ("home", "memory/b.md")


@pytest.fixture
def generation(ledger: Ledger) -> Generation:
    return ledger.generation()


def mark(ledger: Ledger, generation: Generation, *texts: str) -> None:
    ledger.generations.mark(generation.id, [ledger.passage_ids()[text] for text in texts])


# -- which one is active --------------------------------------------------------------------------------------


def test_nothing_is_active_at_first(ledger: Ledger) -> None:
    assert ledger.generations.active() is None


def test_activating_again_gives_the_same_generation(ledger: Ledger, generation: Generation) -> None:
    assert ledger.generation() == generation == ledger.generations.active()


def test_one_generation_is_active_and_the_others_keep_their_vectors(ledger: Ledger, generation: Generation) -> None:
    ledger.put(make_document("memory/a.md", "one\n"))
    mark(ledger, generation, "one\n")
    other = ledger.generations.activate(EmbedderIdentity("larger", "f2", 8), ledger.clock())
    assert ledger.generations.active() == other == Generation(other.id, "f2", "larger", 8, "", ledger.clock())
    assert set(ledger.generations.marked(other.id).tolist()) == set()
    assert len(ledger.generations.marked(generation.id)) == 1
    assert ledger.generation() == generation


# -- what is missing ------------------------------------------------------------------------------------------


def test_missing_are_the_passages_without_a_vector_in_order(ledger: Ledger, generation: Generation) -> None:
    ledger.put(
        make_document("memory/a.md", "one\n", "two\n", "---\n", "three\n"), make_document("memory/b.md", "four\n")
    )
    mark(ledger, generation, "two\n")
    missing = ledger.generations.missing(generation.id, [B, A])
    assert [wanted.text for wanted in missing] == ["four\n", "one\n", "three\n"]
    assert {wanted.document_id for wanted in missing} == {document_id(*A), document_id(*B)}


@pytest.mark.parametrize("most", [1, 10_000])
def test_lacking_are_the_same_passages_whatever_the_portions(ledger: Ledger, generation: Generation, most: int) -> None:
    documents = [make_document(f"memory/{number}.md", f"n{number}\n", "---\n", f"m{number}\n") for number in range(300)]
    ledger.put(*documents)
    mark(ledger, generation, "n7\n")
    paths = [("home", f"memory/{number}.md") for number in range(300)]
    portions = list(ledger.generations.lacking(generation.id, [document_id(*path) for path in paths], most))
    assert (len(portions) > 1) is (most == 1)
    lacking = [row for portion in portions for row in zip(*portion, strict=True)]
    missing = ledger.generations.missing(generation.id, paths)
    assert sorted(lacking) == sorted((each.passage_id, each.document_id, each.text_hash) for each in missing)
    assert len(lacking) == 599


def test_repeated_passage_is_wanted_twice_with_one_hash(ledger: Ledger, generation: Generation) -> None:
    ledger.put(make_document("memory/a.md", "again\n", "again\n", "  again  \n"))
    missing = ledger.generations.missing(generation.id, [A])
    assert len({wanted.passage_id for wanted in missing}) == 3
    assert len({wanted.text_hash for wanted in missing}) == 1


def test_unchanged_passages_stay_marked_when_the_document_is_replaced(ledger: Ledger, generation: Generation) -> None:
    ledger.put(make_document("memory/a.md", "one\n", "two\n"))
    mark(ledger, generation, "one\n", "two\n")
    gone = ledger.passage_ids()["two\n"][0]
    ledger.put(make_document("memory/a.md", "zero\n", "one\n"))
    assert [wanted.text for wanted in ledger.generations.missing(generation.id, [A])] == ["zero\n"]
    assert ledger.generations.orphans(generation.id, [A]) == [gone]


def test_orphans_are_found_by_document_or_everywhere(ledger: Ledger, generation: Generation) -> None:
    ledger.put(make_document("memory/a.md", "one\n"), make_document("memory/b.md", "two\n"))
    mark(ledger, generation, "one\n", "two\n")
    one, two = ledger.passage_ids()["one\n"][0], ledger.passage_ids()["two\n"][0]
    ledger.documents.forget(*A, ledger.clock())
    ledger.documents.forget(*B, ledger.clock())
    assert ledger.generations.orphans(generation.id, [A]) == [one]
    assert set(ledger.generations.orphans(generation.id)) == {one, two}
    ledger.generations.unmark(generation.id, [one, two])
    assert ledger.generations.orphans(generation.id) == []


def test_marking_is_idempotent(ledger: Ledger, generation: Generation) -> None:
    ledger.put(make_document("memory/a.md", "one\n"))
    mark(ledger, generation, "one\n")
    mark(ledger, generation, "one\n")
    passage = ledger.passage_ids()["one\n"][0]
    assert set(ledger.generations.marked(generation.id).tolist()) == {passage}
    ledger.generations.unmark(generation.id, [passage, 42])
    assert set(ledger.generations.marked(generation.id).tolist()) == set()


def test_documents_that_lack_vectors_are_queued(ledger: Ledger, generation: Generation) -> None:
    ledger.put(
        make_document("memory/a.md", "one\n", "two\n"),
        make_document("memory/b.md", "three\n"),
        make_document("c.md", "---\n"),
    )
    ledger.queue.complete(ledger.queue.claim(["embed"], limit=10))
    mark(ledger, generation, "one\n", "three\n")
    assert ledger.generations.enqueue_incomplete(generation.id, ledger.clock()) == 1
    assert [job.path for job in ledger.queue.claim(["embed"], limit=10)] == ["memory/a.md"]


def test_jobs_that_failed_are_left_to_the_queue_where_that_is_asked_for(ledger: Ledger, generation: Generation) -> None:
    ledger.put(*(make_document(f"memory/{name}.md", f"{name}\n") for name in "abc"))
    waits, parked, done = ledger.queue.claim(["embed"], limit=3)
    ledger.queue.retry(waits, run_after=ledger.clock() + 60, reason="busy", hint=None)
    ledger.queue.park(parked, reason="too long", hint=None)
    ledger.queue.complete([done])
    assert ledger.generations.enqueue_incomplete(generation.id, ledger.clock(), failed=False) == 1
    assert ledger.queue.claim(["embed"], limit=3) == [done]
    assert {(failure.path, failure.attempts) for failure in ledger.queue.failures()} == {
        (waits.path, 1),
        (parked.path, 1),
    }
    assert ledger.generations.enqueue_incomplete(generation.id, ledger.clock()) == 3
    assert {job.path for job in ledger.queue.claim(["embed"], limit=3)} == {waits.path, parked.path}


def test_hashes_in_use_are_those_of_passages_that_are_embedded(ledger: Ledger, generation: Generation) -> None:
    ledger.put(make_document("memory/a.md", "one\n", "one\n", "---\n"), make_document("memory/b.md", "two\n"))
    wanted = {each.text_hash for each in ledger.generations.missing(generation.id, [A, B])}
    assert set(ledger.generations.hashes_in_use()) == wanted
    assert len(wanted) == 2


# -- what is pending ------------------------------------------------------------------------------------------


def test_saved_document_is_pending_until_its_words_then_until_its_vectors_are_there(ledger: Ledger) -> None:
    ledger.queue.enqueue("index", *A)
    assert ledger.generations.pending(["home"]) == [Pending(*A, "text")]
    (job,) = ledger.queue.claim(["index"])
    ledger.put(make_document("memory/a.md", "one\n"))
    assert ledger.generations.pending(["home"]) == [Pending(*A, "text")]
    ledger.queue.complete([job])
    assert ledger.generations.pending(["home"]) == [Pending(*A, "vectors")]
    ledger.queue.complete(ledger.queue.claim(["embed"]))
    assert ledger.generations.pending(["home"]) == []


def test_those_whose_words_are_missing_come_first(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "one\n"))
    ledger.clock.move(1)
    ledger.queue.enqueue("index", *B)
    assert [entry.path for entry in ledger.generations.pending(["home"])] == ["memory/b.md", "memory/a.md"]
    ledger.queue.enqueue("index", *A)  # both of its phases are one document that is pending
    assert [entry.phase for entry in ledger.generations.pending(["home"])] == ["text", "text"]
    assert ledger.generations.count_pending(["home"]) == 2
    assert ledger.generations.count_pending(["work"]) == 0


def test_failed_documents_stay_pending(ledger: Ledger) -> None:
    ledger.queue.enqueue("index", *A)
    ledger.queue.park(ledger.queue.claim(["index"])[0], reason="unreadable", hint=None)
    assert ledger.generations.pending(["home"]) == [Pending(*A, "text")]


def test_vectors_to_be_cleared_are_not_pending(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "one\n"), make_document("memory/b.md", "two\n"))
    ledger.documents.forget(*A, ledger.clock())
    ledger.documents.skip(make_document("memory/b.md"), "not text", ledger.clock())
    assert ledger.queue.depths() == {("embed", "queued"): 2}
    assert ledger.generations.pending(["home"]) == []


def test_other_workspaces_and_other_work_are_not_pending(ledger: Ledger) -> None:
    ledger.queue.enqueue("index", "work", "memory/a.md")
    ledger.queue.enqueue("reconcile", "home")
    ledger.queue.enqueue("maintain")
    assert ledger.generations.pending(["home"]) == []


# -- the switch between generations ---------------------------------------------------------------------------


def test_flip_happens_whole_or_not_at_all(ledger: Ledger, generation: Generation) -> None:
    other = ledger.generations.register(EmbedderIdentity("larger", "f2", 8), ledger.clock())

    def flip_and_fail() -> None:
        with ledger.database.write():
            ledger.generations.flip(other.id, ledger.clock())
            raise RuntimeError("cut off")

    with pytest.raises(RuntimeError):
        flip_and_fail()
    assert ledger.generations.active() == generation
    ledger.clock.move(5)
    ledger.generations.flip(other.id, ledger.clock())
    active = ledger.generations.active()
    assert active is not None
    assert active.fingerprint == "f2"
    former = ledger.generations.former()
    assert former is not None
    assert (former.fingerprint, former.retired_at) == ("f1", ledger.clock())


def test_registered_generation_is_filled_beside_the_one_that_is_searched(
    ledger: Ledger, generation: Generation
) -> None:
    ledger.put(make_document("memory/a.md", "one\n", "two\n"))
    mark(ledger, generation, "one\n", "two\n")
    other = ledger.generations.register(EmbedderIdentity("larger", "f2", 8), ledger.clock(), "a recipe")
    assert other.recipe == "a recipe"
    assert ledger.generations.active() == generation
    mark(ledger, other, "one\n")
    assert ledger.generations.count(generation.id) == (2, 2)
    assert ledger.generations.count(other.id) == (1, 2)
    assert ledger.generations.enqueue_incomplete(other.id, ledger.clock(), "fill") == 1
    assert [job.path for job in ledger.queue.claim(["fill"])] == ["memory/a.md"]


def test_generation_that_was_never_searched_is_retired_once_it_is_given_up(
    ledger: Ledger, generation: Generation
) -> None:
    other = ledger.generations.register(EmbedderIdentity("larger", "f2", 8), ledger.clock())
    ledger.generations.retire_unused([other.id], ledger.clock())
    assert ledger.generations.former() is None
    ledger.generations.retire_unused([], ledger.clock())
    former = ledger.generations.former()
    assert former is not None
    assert former.fingerprint == "f2"
    again = ledger.generations.register(EmbedderIdentity("larger", "f2", 8), ledger.clock())
    assert again.retired_at is None


def test_forgotten_generation_takes_its_marks_and_its_noise_with_it(ledger: Ledger, generation: Generation) -> None:
    ledger.put(make_document("memory/a.md", "one\n"))
    other = ledger.generations.register(EmbedderIdentity("larger", "f2", 8), ledger.clock())
    mark(ledger, other, "one\n")
    ledger.database.remember("noise:f2", "{}")
    ledger.generations.forget(other)
    assert ledger.generations.all() == [generation]
    assert ledger.rows("vectors") == 0
    assert ledger.rows("meta") == 1  # how text is folded
    ledger.generations.forget(generation)  # which is searched
    assert ledger.generations.active() == generation


def test_marks_go_all_at_once_and_those_of_other_generations_stay(ledger: Ledger, generation: Generation) -> None:
    ledger.put(make_document("memory/a.md", "one\n", "two\n"))
    mark(ledger, generation, "one\n", "two\n")
    other = ledger.generations.activate(EmbedderIdentity("larger", "f2", 8), ledger.clock())
    mark(ledger, other, "one\n")
    ledger.generations.unmark(generation.id, None)
    assert set(ledger.generations.marked(generation.id).tolist()) == set()
    assert len(ledger.generations.marked(other.id)) == 1
