from __future__ import annotations

import dataclasses
import threading
from datetime import date
from pathlib import Path

import pytest

from memoryd.store.documents import Known, Remark, Totals
from memoryd.store.search.legs import trigram_leg
from memoryd.store.search.query import build_query
from memoryd.store.search.visibility import Visible
from tests.support.documents import make_document
from tests.support.ledger import Ledger, check_ledger, open_ledger


def found(ledger: Ledger, query: str) -> set[str]:
    """Texts of the chunks that keyword search finds."""
    with ledger.database.read() as sql:
        ids = trigram_leg(sql, build_query(query), 100, Visible()).ranking
    return {text for text, identity in ledger.chunk_ids().items() if identity in ids}


def snapshot(ledger: Ledger) -> dict[str, list[tuple[object, ...]]]:
    """All that the ledger says of documents."""
    with ledger.database.read() as sql:
        return {
            table: sql.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
            for table in ("documents", "passages", "chunks", "chunk_texts")
        }


def keys(ledger: Ledger) -> list[str]:
    with ledger.database.read() as sql:
        return [row[0] for row in sql.execute("SELECT key FROM chunks ORDER BY document_id, ordinal")]


# -- replacing ------------------------------------------------------------------------------------------------


def test_replaced_document_is_found_by_its_new_words_only(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "the old plan\n"))
    ledger.put(make_document("memory/a.md", "the new idea\n"))
    assert found(ledger, "idea") == {"the new idea\n"}
    assert found(ledger, "plan") == set()
    check_ledger(ledger.database)


def test_replacing_with_the_same_changes_nothing(ledger: Ledger) -> None:
    document = make_document("memory/a.md", "one\n", "two\n", "three\n", chunks=[(0, 1), (1, 2)])
    ledger.put(document)
    before = snapshot(ledger)
    ledger.put(document)
    assert snapshot(ledger) == before
    check_ledger(ledger.database)


def test_chunk_is_its_passages_joined_in_order(ledger: Ledger) -> None:
    texts = [f"passage {number}\n" for number in range(12)]
    ledger.put(make_document("memory/a.md", *texts, chunks=[(0, 4), (4, 11)]))
    assert ledger.chunk_ids().keys() == {"".join(texts[:5]), "".join(texts[4:])}


def test_failure_half_way_leaves_the_document_as_it_was(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "kept words\n", "more of them\n"))
    before = snapshot(ledger)
    twice = make_document("memory/a.md", "new words\n", "others\n")
    broken = dataclasses.replace(twice, passages=(twice.passages[0], twice.passages[0]))
    with pytest.raises(Exception, match="UNIQUE"):
        ledger.put(broken)
    assert snapshot(ledger) == before
    assert found(ledger, "kept") == {"kept words\n"}
    check_ledger(ledger.database)


def test_keys_and_ids_stay_when_lines_move(ledger: Ledger) -> None:
    texts = ("alpha\n", "beta\n", "gamma\n")
    ledger.put(make_document("memory/a.md", *texts))
    keys_before, ids_before, passages_before = keys(ledger), ledger.chunk_ids(), ledger.passage_ids()
    ledger.put(make_document("memory/a.md", *texts, first_line=41))
    assert keys(ledger) == keys_before
    assert ledger.chunk_ids() == ids_before
    assert ledger.passage_ids() == passages_before
    with ledger.database.read() as sql:
        assert sql.execute("SELECT start_line, end_line FROM chunks ORDER BY ordinal").fetchall() == [
            (41, 41),
            (42, 42),
            (43, 43),
        ]


def test_inserted_passage_leaves_the_rows_of_the_others(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "alpha\n", "beta\n", "gamma\n"))
    before = ledger.chunk_ids()
    ledger.put(make_document("memory/a.md", "first of all\n", "alpha\n", "beta\n", "gamma\n"))
    after = ledger.chunk_ids()
    assert {text: after[text] for text in before} == before
    with ledger.database.read() as sql:
        order = sql.execute("SELECT text FROM chunk_texts JOIN chunks USING (id) ORDER BY ordinal").fetchall()
    assert [text for (text,) in order] == ["first of all\n", "alpha\n", "beta\n", "gamma\n"]
    check_ledger(ledger.database)


def test_chunks_that_change_places_keep_their_keys(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "alpha\n", "beta\n", "gamma\n"))
    before = keys(ledger)
    ledger.put(make_document("memory/a.md", "gamma\n", "beta\n", "alpha\n"))
    assert keys(ledger) == before[::-1]
    check_ledger(ledger.database)


def test_other_heading_is_found_though_the_text_is_the_same(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "same text\n", heading="Garden"))
    ledger.put(make_document("memory/a.md", "same text\n", heading="Kitchen"))
    assert found(ledger, "kitchen") == {"same text\n"}
    assert found(ledger, "garden") == set()
    check_ledger(ledger.database)


def test_repeated_text_is_two_chunks_with_two_keys(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "again\n", "between\n", "again\n"))
    assert len(set(keys(ledger))) == 3
    with ledger.database.read() as sql:
        assert sql.execute("SELECT count(DISTINCT id) FROM passages").fetchone() == (3,)
    ledger.put(make_document("memory/a.md", "again\n", "between\n"))
    assert ledger.rows("chunks") == 2
    check_ledger(ledger.database)


def test_same_text_in_two_documents_has_two_keys_and_one_hash(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "same\n"), make_document("memory/b.md", "same\n"))
    assert len(set(keys(ledger))) == 2
    with ledger.database.read() as sql:
        assert sql.execute("SELECT count(DISTINCT id), count(DISTINCT text_hash) FROM passages").fetchone() == (2, 1)


def test_keys_are_the_same_in_every_ledger(ledger: Ledger, tmp_path: Path) -> None:
    with open_ledger(tmp_path / "other.db") as other:
        other.put(make_document("memory/unrelated.md", "something else\n"))
        for each in (ledger, other):
            each.put(make_document("memory/a.md", "alpha\n", "beta\n"))
        with other.database.read() as sql:
            rebuilt = {row[0] for row in sql.execute("SELECT key FROM chunks")}
    assert set(keys(ledger)) < rebuilt


@pytest.mark.parametrize(
    "text",
    [
        "nul \0 inside\n",
        "emoji 👩‍👩‍👧‍👦 family\n",
        "e\u0301 decomposed\n",
        "ＦＵＬＬ width\n",
        "\ufeffbom\n",
        "'quotes\" -- ;\n",
    ],
)
def test_any_text_is_kept_as_it_is(ledger: Ledger, text: str) -> None:
    ledger.put(make_document("memory/a.md", text, heading=text.strip()))
    assert ledger.chunk_ids().keys() == {text}
    ledger.put(make_document("memory/a.md", "other\n"))
    check_ledger(ledger.database)


def test_passage_with_nothing_to_embed_wants_no_vector(ledger: Ledger) -> None:
    generation = ledger.generation()
    ledger.put(make_document("memory/a.md", "---\n", "words\n", "\n\n"))
    assert [wanted.text for wanted in ledger.generations.missing(generation.id, [("home", "memory/a.md")])] == [
        "words\n"
    ]


def test_front_matter_with_half_a_surrogate_pair_is_survived(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "words\n", title="\ud800 title", front_matter={"title": "\ud800 title"}))
    assert found(ledger, "words") == {"words\n"}


def test_replacing_queues_the_embedding(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "words\n"))
    assert [job.key for job in ledger.queue.claim(["embed"])] == ["embed:home:memory/a.md"]


# -- forgetting and skipping ----------------------------------------------------------------------------------


def test_forgotten_document_disappears_before_its_vectors(ledger: Ledger) -> None:
    generation = ledger.generation()
    ledger.put(make_document("memory/a.md", "words\n"))
    passage, document = ledger.passage_ids()["words\n"]
    ledger.generations.mark(generation.id, [(passage, document)])
    ledger.queue.complete(ledger.queue.claim(["embed"]))
    assert ledger.documents.forget("home", "memory/a.md", ledger.clock())
    assert found(ledger, "words") == set()
    assert ledger.generations.orphans(generation.id) == [passage]
    assert [job.path for job in ledger.queue.claim(["embed"])] == ["memory/a.md"]
    check_ledger(ledger.database)


def test_forgetting_what_is_not_known_does_nothing(ledger: Ledger) -> None:
    assert not ledger.documents.forget("home", "memory/a.md", ledger.clock())
    assert ledger.queue.depths() == {}


def test_forgotten_workspace_leaves_the_others(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "one\n"), make_document("memory/b.md", "two\n"))
    ledger.put(make_document("memory/a.md", "three\n", workspace="work"))
    assert ledger.documents.forget_workspace("home", ledger.clock()) == 2
    assert ledger.documents.workspaces() == ["work"]
    assert ledger.chunk_ids().keys() == {"three\n"}
    check_ledger(ledger.database)


def test_skipped_document_is_known_but_not_found(ledger: Ledger) -> None:
    document = make_document("memory/a.md", "words\n")
    ledger.put(document)
    ledger.documents.skip(document, "not text", ledger.clock())
    assert found(ledger, "words") == set()
    assert ledger.documents.lookup("home", "memory/a.md") == Known("signature", "hash")
    assert ledger.documents.remarks() == [Remark("home", "memory/a.md", "not text", skipped=True)]
    assert ledger.documents.indexed_in("memory/a.md", ["home"]) == []
    ledger.put(document)
    assert ledger.documents.remarks() == []
    assert found(ledger, "words") == {"words\n"}
    check_ledger(ledger.database)


# -- looking --------------------------------------------------------------------------------------------------


def test_known_tells_what_the_files_were(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "one\n", content_hash="h1"))
    ledger.put(make_document("memory/b.md", "two\n", content_hash="h2"))
    ledger.put(make_document("memory/a.md", "three\n", workspace="work"))
    assert ledger.documents.known("home") == {
        "memory/a.md": Known("signature", "h1"),
        "memory/b.md": Known("signature", "h2"),
    }
    assert ledger.documents.lookup("home", "memory/c.md") is None


def test_touched_document_has_a_new_signature_and_its_old_text(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "one\n"))
    ledger.documents.touch("home", "memory/a.md", "later")
    assert ledger.documents.lookup("home", "memory/a.md") == Known("later", "hash")
    assert found(ledger, "one") == {"one\n"}


def test_expired_documents_are_to_be_read_again_and_found_meanwhile(ledger: Ledger) -> None:
    for path in ("memory/a.md", "memory/b.md"):
        ledger.put(make_document(path, f"{path} words\n"))
    ledger.put(make_document("memory/a.md", "elsewhere\n", workspace="work"))
    ledger.documents.expire("home", ["memory/a.md", "memory/unknown.md"])
    assert ledger.documents.lookup("home", "memory/a.md") == Known("", "")
    assert ledger.documents.lookup("home", "memory/b.md") == Known("signature", "hash")
    ledger.documents.expire("home")
    assert ledger.documents.lookup("home", "memory/b.md") == Known("", "")
    assert ledger.documents.lookup("work", "memory/a.md") == Known("signature", "hash")
    assert len(found(ledger, "words")) == 2


def test_document_is_indexed_in_the_workspaces_that_have_it(ledger: Ledger) -> None:
    for workspace in ("home", "work"):
        ledger.put(make_document("memory/a.md", "one\n", workspace=workspace))
    assert ledger.documents.indexed_in("memory/a.md", ["work", "home", "other"]) == ["work", "home"]
    assert ledger.documents.indexed_in("memory/a.md", ["work"]) == ["work"]


def test_notices_are_remarks_on_a_document_that_is_indexed(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "one\n", notices=["UTF-16: read as such", "front matter ignored"]))
    (remark,) = ledger.documents.remarks()
    assert (remark.reason, remark.skipped) == ("UTF-16: read as such; front matter ignored", False)


def test_totals_count_one_workspace_and_one_generation(ledger: Ledger) -> None:
    generation = ledger.generation()
    ledger.put(make_document("memory/a.md", "one\n", "two\n", "---\n", chunks=[(0, 1), (1, 2)]))
    ledger.put(make_document("memory/b.md", "three\n", workspace="work"))
    skipped = make_document("memory/c.md")
    ledger.documents.skip(skipped, "not text", ledger.clock())
    passage, document = ledger.passage_ids()["one\n"]
    ledger.generations.mark(generation.id, [(passage, document), (12345, document)])
    assert ledger.documents.totals("home", generation.id) == Totals(1, 1, chunks=2, passages=2, vectors=1)
    assert ledger.documents.totals("home", None) == Totals(1, 1, chunks=2, passages=2, vectors=0)
    assert ledger.documents.totals("nowhere", generation.id) == Totals(0, 0, 0, 0, 0)


def test_totals_are_those_of_now_whatever_was_counted_before(ledger: Ledger) -> None:
    """They are kept until something is written, be it by a transaction that is open while they are counted."""
    generation = ledger.generation()
    counted: list[Totals] = []

    def count() -> Totals:
        return ledger.documents.totals("home", generation.id)

    assert (count(), count()) == (Totals(0, 0, 0, 0, 0),) * 2
    with ledger.database.write():
        ledger.put(make_document("memory/a.md", "one\n", "two\n"))
        other = threading.Thread(target=lambda: counted.append(count()))
        other.start()
        other.join()
    assert counted == [Totals(0, 0, 0, 0, 0)], "what is not committed does not count"
    assert count() == Totals(1, 0, chunks=2, passages=2, vectors=0)
    for vectors, passage in enumerate(ledger.passage_ids().values(), start=1):
        ledger.generations.mark(generation.id, [passage])
        assert count().vectors == vectors
    ledger.documents.forget("home", "memory/a.md", ledger.clock())
    assert count() == Totals(0, 0, 0, 0, 0)


def test_document_keeps_its_date(ledger: Ledger) -> None:
    ledger.put(make_document("memory/2026-11-15.md", "one\n", written=date(2026, 11, 15)))
    with ledger.database.read() as sql:
        assert sql.execute("SELECT date, evergreen FROM documents").fetchone() == ("2026-11-15", 0)


def test_append_to_a_long_document_leaves_all_other_rows(ledger: Ledger) -> None:
    texts = [f"passage {number} of a long note\n" for number in range(300)]
    ledger.put(make_document("memory/long.md", *texts))
    before = ledger.chunk_ids()
    ledger.put(make_document("memory/long.md", *texts, "and one more\n"))
    after = ledger.chunk_ids()
    assert {text: after[text] for text in texts} == before
    assert after.keys() - before.keys() == {"and one more\n"}
