from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from memoryd.store.model import document_id
from memoryd.store.protocols import Vectors
from memoryd.store.search.keyword_leg import KeywordLeg
from memoryd.store.search.legs import trigram_leg, words_leg
from memoryd.store.search.nearness import passages_of, seek_passages, vector_leg
from memoryd.store.search.query import build_query
from memoryd.store.search.visibility import Visible
from tests.support.documents import make_document
from tests.support.ledger import Ledger
from tests.support.memory_vectors import MemoryVectors


def by_words(ledger: Ledger, query: str, limit: int = 100, paths: list[str] | None = None) -> list[str]:
    """Texts of the chunks that the trigram leg brings, best first."""
    documents = None if paths is None else frozenset(document_id("home", path) for path in paths)
    with ledger.database.read() as sql:
        ranking = trigram_leg(sql, build_query(query), limit, Visible(documents)).ranking
    assert [place.rank for place in ranking.values()] == list(range(1, len(ranking) + 1))
    texts = {identity: text for text, identity in ledger.chunk_ids().items()}
    return [texts[chunk] for chunk in ranking]


def by_meaning(ledger: Ledger, index: MemoryVectors, vector: Vectors, limit: int = 100) -> list[str]:
    with ledger.database.read() as sql:
        ranking = vector_leg(sql, seek_passages(index, vector, limit, Visible()), limit, Visible()).ranking
    texts = {identity: text for text, identity in ledger.chunk_ids().items()}
    return [texts[chunk] for chunk in ranking]


def towards(*weights: float) -> Vectors:
    vector = np.zeros(4, np.float32)
    vector[: len(weights)] = weights
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


# -- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("рецепт борща", ["Бабушка варит борщ\n"]),
        ("салат со свёклой", ["Свёкла и чеснок\n"]),
        ("την θάλασσα", ["στη θάλασσας\n"]),
        ("борщевик", []),
        ("रसोई की चाबियां", ["चाबी रसोई में है\n"]),
        ("מפתחות", ["הַמַּפְתֵּחַ מפתח בַּמִּטְבָּח\n"]),
    ],
)
def test_word_of_another_alphabet_is_found_with_other_endings(query: str, found: list[str], ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "Бабушка варит борщ\n", "Свёкла и чеснок\n", "στη θάλασσας\n"))
    ledger.put(make_document("b.md", "चाबी रसोई में है\n", "הַמַּפְתֵּחַ מפתח בַּמִּטְבָּח\n"))
    with ledger.database.read() as sql:
        ranking = words_leg(sql, build_query(query), 10, Visible()).ranking
    texts = {identity: text for text, identity in ledger.chunk_ids().items()}
    assert [texts[chunk] for chunk in ranking] == found


# -- names of files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leg", [words_leg, trigram_leg])
@pytest.mark.parametrize("query", ["wifi", "wifi.md", "the wifi at home", "network/wifi"])
def test_note_is_found_by_what_its_file_is_called(leg: Callable[..., KeywordLeg], query: str, ledger: Ledger) -> None:
    """Its text has none of it."""
    ledger.put(make_document("memory/network/wifi.md", "SSID: treehouse\n"))
    ledger.put(*(make_document(f"memory/{number}.md", f"number {number}\n") for number in range(30)))
    with ledger.database.read() as sql:
        (first, *_) = leg(sql, build_query(query), 100, Visible()).ranking
    assert first == ledger.chunk_ids()["SSID: treehouse\n"]


@pytest.mark.parametrize("leg", [words_leg, trigram_leg])
def test_renamed_note_is_found_by_its_new_name_alone(leg: Callable[..., KeywordLeg], ledger: Ledger) -> None:
    ledger.put(make_document("memory/wifi.md", "SSID: treehouse\n"))
    ledger.documents.forget("home", "memory/wifi.md", ledger.clock())
    ledger.put(make_document("memory/wireless.md", "SSID: treehouse\n"))
    with ledger.database.read() as sql:
        assert not leg(sql, build_query("wifi"), 100, Visible()).ranking
        assert leg(sql, build_query("wireless"), 100, Visible()).ranking


# -- parts of words ----------------------------------------------------------------------------------------------------


def test_more_matching_terms_score_higher(ledger: Ledger) -> None:
    filler = [f"something else entirely, number {number}\n" for number in range(20)]
    ledger.put(make_document("a.md", "compaction only here\n", "compaction of the ledger\n", *filler))
    with ledger.database.read() as sql:
        ranking = trigram_leg(sql, build_query("compaction ledger"), 100, Visible()).ranking
    scores = [place.score for place in ranking.values()]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)
    assert by_words(ledger, "compaction ledger") == ["compaction of the ledger\n", "compaction only here\n"]


def test_rare_word_counts_more_than_a_common_one(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", *(f"the server runs, day {number}\n" for number in range(20)), "the zeppelin\n"))
    assert by_words(ledger, "server zeppelin")[0] == "the zeppelin\n"


def test_heading_is_found_too(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "water them on Mondays\n", heading="Garden > Tomatoes"))
    assert by_words(ledger, "tomatoes") == ["water them on Mondays\n"]


def test_parts_of_words_and_other_forms_are_found(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "Ｒｅｌｅａｓｅ-Vorbereitung in der Straße\n"))
    for query in ("release", "bereit", "STRASSE", "straße"):
        assert len(by_words(ledger, query)) == 1, query


def test_filter_inside_the_leg_never_starves(ledger: Ledger) -> None:
    for number in range(30):
        ledger.put(make_document(f"loud/{number}.md", "backup backup backup\n"))
    ledger.put(make_document("quiet.md", "once, a backup was mentioned in a much longer text about other things\n"))
    assert len(by_words(ledger, "backup", limit=5, paths=["quiet.md"])) == 1
    assert len(by_words(ledger, "会", limit=5, paths=["quiet.md"])) == 0


def test_filter_that_leaves_nothing_finds_nothing(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "backup 会议\n"))
    assert by_words(ledger, "backup", paths=[]) == []
    assert by_words(ledger, "会议", paths=[]) == []


def test_ties_have_a_fixed_order_that_does_not_depend_on_when_they_were_indexed(ledger: Ledger) -> None:
    def order() -> list[str]:
        with ledger.database.read() as sql:
            ranking = trigram_leg(sql, build_query("identical"), 100, Visible()).ranking
            path = "SELECT path FROM documents d JOIN chunks c ON c.document_id = d.id WHERE c.id = ?"
            return [sql.execute(path, (chunk,)).fetchone()[0] for chunk in ranking]

    paths = [f"{number}.md" for number in range(8)]
    ledger.put(*(make_document(path, "identical text\n") for path in paths))
    before = order()
    for path in paths:
        ledger.documents.forget("home", path, ledger.clock())
    ledger.put(*(make_document(path, "identical text\n") for path in reversed(paths)))
    assert order() == before


@pytest.mark.parametrize("query", ["会", "会议", "議", "ラー", "회의", "🎉", "v2", "C#", "au", '"', ", "])
def test_short_query_finds_every_chunk_that_contains_it(ledger: Ledger, query: str) -> None:
    texts = [
        "今天的会议记录\n",
        "会议",
        "会",
        "社会\n",
        "会議の議事録とエラー\n",
        "오늘 회의는 없다\n",
        "launch 🎉 of V2, written in C#\n",
        'the café "Aurora"\n',
        "nothing of the kind\n",
    ]
    ledger.put(make_document("a.md", *texts))
    assert set(by_words(ledger, query)) == {text for text in texts if query.casefold() in text.casefold()}


def test_short_query_ranks_by_how_much_of_the_text_it_is(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "会议 " + "其他内容" * 100 + "\n", "会议会议会议\n", "会议\n"))
    assert by_words(ledger, "会议")[0] == "会议会议会议\n"
    assert by_words(ledger, "会议", limit=1) == ["会议会议会议\n"]


def test_short_word_is_found_where_very_many_others_have_its_letters(ledger: Ledger) -> None:
    ledger.put(make_document("old.md", "Let us go.\n"))
    ledger.put(*(make_document(f"{number}.md", f"mango number {number}\n") for number in range(300)))
    found = by_words(ledger, "go")
    assert found[0] == "Let us go.\n"
    assert len(found) == 100
    assert set(by_words(ledger, "ng", limit=3)) <= {f"mango number {number}\n" for number in range(300)}


def test_single_letter_is_a_word(ledger: Ledger) -> None:
    """Else it would be found in nearly every one."""
    ledger.put(make_document("a.md", "plan B\n", "a bed of roses\n"))
    assert by_words(ledger, "b") == ["plan B\n"]


@pytest.mark.usefixtures("filtered")
def test_filter_leaves_what_a_short_query_finds_within_it(ledger: Ledger) -> None:
    ledger.put(make_document("old.md", "A party 🎉 in the garden\n"))
    ledger.put(*(make_document(f"{number}.md", f"🎉 number {number}\n") for number in range(300)))
    assert by_words(ledger, "🎉", paths=["old.md", "7.md"]) == ["🎉 number 7\n", "A party 🎉 in the garden\n"]


def test_short_query_finds_headings(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "text\n", heading="会议"))
    assert by_words(ledger, "会议") == ["text\n"]


def test_words_not_adjacent_in_an_unspaced_script_are_found(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "这个策略是：数据库每天备份\n", "无关的内容在这里\n"))
    assert by_words(ledger, "备份数据库策略") == ["这个策略是：数据库每天备份\n"]


def test_nothing_asked_finds_nothing(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "words\n"))
    assert by_words(ledger, "  ") == []


def test_sixty_four_terms_are_one_query(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", *(f"topic{number:03} is here\n" for number in range(100))))
    assert len(by_words(ledger, " ".join(f"topic{number:03}" for number in range(100)))) == 64


# -- meaning --------------------------------------------------------------------------------------------------


@pytest.fixture
def index(ledger: Ledger) -> MemoryVectors:
    ledger.generation(dimension=4)
    return MemoryVectors(4)


def test_best_passage_stands_for_its_chunk(ledger: Ledger, index: MemoryVectors) -> None:
    ledger.put(make_document("a.md", "one\n", "two\n", "three\n", chunks=[(0, 1), (2, 2)]))
    ledger.embed(index, {"one\n": towards(0, 1), "two\n": towards(1), "three\n": towards(1, 1)})
    with ledger.database.read() as sql:
        ranking = vector_leg(sql, seek_passages(index, towards(1), 10, Visible()), 10, Visible()).ranking
    (first, best), (_, second) = ranking.items()
    assert first == ledger.chunk_ids()["one\ntwo\n"]
    assert (best.rank, best.passage) == (1, 1)
    assert best.score == pytest.approx(1.0)
    assert second.score == pytest.approx(0.7071, abs=1e-4)


def test_chunk_is_as_near_as_its_best_passage_and_its_passages_on_average(ledger: Ledger, index: MemoryVectors) -> None:
    ledger.put(make_document("a.md", "one\n", "two\n", "three\n", "four\n", chunks=[(0, 1), (2, 3)]))
    vectors = {"one\n": towards(1), "two\n": towards(0, 1), "three\n": towards(1), "four\n": towards(1, 1)}
    ledger.embed(index, vectors)
    with ledger.database.read() as sql:
        ranking = vector_leg(sql, seek_passages(index, towards(1), 10, Visible()), 10, Visible()).ranking
    assert [place.score for place in ranking.values()] == pytest.approx([1.0, 1.0])
    assert [place.share for place in ranking.values()] == pytest.approx([(1 + 0.8536) / 2, (1 + 0.5) / 2], abs=1e-4)
    assert next(iter(ranking)) == ledger.chunk_ids()["three\nfour\n"]


def test_passage_in_an_overlap_counts_for_both_chunks(ledger: Ledger, index: MemoryVectors) -> None:
    ledger.put(make_document("a.md", "one\n", "two\n", "three\n", chunks=[(0, 1), (1, 2)]))
    ledger.embed(index, {"one\n": towards(0, 1), "two\n": towards(1), "three\n": towards(1, 1)})
    assert by_meaning(ledger, index, towards(1)) == ["two\nthree\n", "one\ntwo\n"]


def test_share_counts_from_what_is_near_by_chance(ledger: Ledger, index: MemoryVectors) -> None:
    ledger.put(make_document("a.md", "one\n", "two\n"))
    ledger.embed(index, {"one\n": towards(1), "two\n": towards(1, 1)})
    with ledger.database.read() as sql:
        ranking = vector_leg(sql, seek_passages(index, towards(1), 10, Visible()), 10, Visible(), floor=0.8).ranking
    assert [place.share for place in ranking.values()] == pytest.approx([1.0, 0.0])


def test_chunks_that_others_found_are_judged_as_well(ledger: Ledger, index: MemoryVectors) -> None:
    texts = [f"text {number}\n" for number in range(10)]
    ledger.put(make_document("a.md", *texts))
    ledger.embed(index, {text: towards(1, number / 10) for number, text in enumerate(texts)})
    last = ledger.chunk_ids()["text 9\n"]
    with ledger.database.read() as sql:
        near = vector_leg(
            sql, seek_passages(index, towards(1), 3, Visible()), 3, Visible(), others=passages_of(sql, {last})
        )
    assert [place.rank for place in near.ranking.values()] == [1, 2, 3, 4]
    assert list(near.ranking)[-1] == last
    best = [place.score for place in near.ranking.values()]
    assert sorted(near.cosines.values(), reverse=True) == pytest.approx(best)  # each chunk has one passage


def test_passages_without_a_vector_have_no_cosine(ledger: Ledger, index: MemoryVectors) -> None:
    ledger.put(make_document("a.md", "one\n", "two\n"))
    ledger.embed(index, {"one\n": towards(1)})
    with ledger.database.read() as sql:
        near = vector_leg(
            sql,
            seek_passages(index, towards(1), 3, Visible()),
            3,
            Visible(),
            others=passages_of(sql, set(ledger.chunk_ids().values())),
        )
    assert list(near.cosines.values()) == pytest.approx([1.0])


def test_orphaned_vectors_are_ignored(ledger: Ledger, index: MemoryVectors) -> None:
    ledger.put(make_document("a.md", "stays\n"), make_document("b.md", "goes\n"))
    ledger.embed(index, {"stays\n": towards(1, 1), "goes\n": towards(1)})
    index.upsert([999], [document_id("home", "a.md")], towards(1).reshape(1, -1))
    ledger.documents.forget("home", "b.md", ledger.clock())
    assert by_meaning(ledger, index, towards(1)) == ["stays\n"]


def test_leg_brings_no_more_chunks_than_it_may(ledger: Ledger, index: MemoryVectors) -> None:
    texts = [f"text {number}\n" for number in range(10)]
    ledger.put(make_document("a.md", *texts))
    ledger.embed(index, {text: towards(1, number / 10) for number, text in enumerate(texts)})
    assert by_meaning(ledger, index, towards(1), limit=3) == texts[:3]


# -- what the vector leg cannot know --------------------------------------------------------------------------


def test_chunks_are_unknown_until_all_their_passages_have_vectors(ledger: Ledger, index: MemoryVectors) -> None:
    ledger.put(make_document("a.md", "one\n", "two\n", "---\n", chunks=[(0, 1), (1, 2)]))
    ledger.put(make_document("b.md", "other\n"))
    both, second = ledger.chunk_ids()["one\ntwo\n"], ledger.chunk_ids()["two\n---\n"]

    def unknown() -> set[int]:
        with ledger.database.read() as sql:
            return set(
                vector_leg(
                    sql,
                    seek_passages(index, towards(1), 1, Visible()),
                    1,
                    Visible(),
                    others=passages_of(sql, {both, second}),
                ).unknown
            )

    ledger.embed(index, {"other\n": towards(1)})
    assert unknown() == {both, second}
    ledger.embed(index, {"two\n": towards(0, 1)})
    assert unknown() == {both}  # what is nothing to embed is not waited for
    ledger.embed(index, {"one\n": towards(0, 1)})
    assert unknown() == set()


def test_queries_use_their_indexes(ledger: Ledger) -> None:
    """A scan of passages, chunks or vectors for each candidate makes a query slow as the memory grows."""
    statements: list[str] = []
    ledger.put(make_document("a.md", "some words\n"))
    index = MemoryVectors(4)
    ledger.generation(dimension=4)
    ledger.embed(index, {"some words\n": towards(1)})
    with ledger.database.read() as sql:
        sql.set_trace_callback(statements.append)
        trigram_leg(sql, build_query("words"), 10, Visible(frozenset({1})))
        vector_leg(sql, seek_passages(index, towards(1), 10, Visible()), 10, Visible())
        sql.set_trace_callback(None)
        ours = [each for each in statements if "SELECT" in each and "chunks_fts_" not in each]  # not those of FTS5
        steps = [row[3] for each in ours for row in sql.execute(f"EXPLAIN QUERY PLAN {each}")]
    allowed = ("SCAN chunks_fts VIRTUAL", "SCAN json_each", "SCAN wanted", "SCAN scored", "SCAN best", "SCAN (subquery")
    assert [step for step in steps if step.startswith("SCAN") and not step.startswith(allowed)] == []
    assert len(steps) > 8


def test_a_character_that_very_many_chunks_have_is_looked_for_where_it_stands_most(ledger: Ledger) -> None:
    """And a hidden chunk takes nobody's place."""
    few = {number: f"鳥が来た。{'花が咲いて風が吹いた。' * 8}{number}\n" for number in range(300)}
    texts = [*few.values(), "鳥と鳥と鳥。\n", "鳥鳥鳥鳥。\n", "花だけ。\n"]
    ledger.put(*(make_document(f"{number}.md", text) for number, text in enumerate(texts)))
    ids = ledger.chunk_ids()
    read: list[str] = []
    with ledger.database.read() as sql:
        sql.set_trace_callback(read.append)
        ranking = trigram_leg(sql, build_query("鳥"), 20, Visible()).ranking
        sql.set_trace_callback(None)
        seen = Visible(None, frozenset({ids["鳥鳥鳥鳥。\n"]}))
        without = trigram_leg(sql, build_query("鳥"), 20, seen).ranking
    assert list(ranking)[:2] == [ids["鳥鳥鳥鳥。\n"], ids["鳥と鳥と鳥。\n"]]
    assert next(iter(without)) == ids["鳥と鳥と鳥。\n"]
    assert len(ranking) == len(without) == 20
    (scan,) = [statement for statement in read if "chunk_texts" in statement]
    assert scan.count(",") < 250  # not three hundred chunks


# -- words ----------------------------------------------------------------------------------------------------


def worded(ledger: Ledger, query: str) -> list[str]:
    """Texts of the chunks that the words leg brings, best first."""
    texts = {identity: text for text, identity in ledger.chunk_ids().items()}
    with ledger.database.read() as sql:
        return [texts[chunk].strip() for chunk in words_leg(sql, build_query(query), 100, Visible()).ranking]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("She was painting the boats", "painted boat"),  # stems
        ("Café Müller opens at nine", "cafe muller"),  # accents
        ("我们决定用数据库保存备份", "备份 数据库"),  # pairs of characters, not adjacent
        ("东京下雨了", "雨"),  # one character inside a run
        ("今年种了水稻", "稻"),  # one character at its end
        ("오늘 회의에서 결정했다", "회의"),  # a word under its particle
        ("ﾊﾞｯｸｱｯﾌﾟを取る", "バックアップ"),  # half-width kana
        ("Версия готова к выпуску", "ВЕРСИЯ"),
        ("call snake_case_name first", "snake_case_name"),
    ],
)
def test_words_are_found_in_every_script(ledger: Ledger, text: str, query: str) -> None:
    ledger.put(make_document("memory/a.md", text), make_document("memory/b.md", "something else entirely"))
    assert worded(ledger, query) == [text]


def test_word_is_not_found_inside_another(ledger: Ledger) -> None:
    ledger.put(make_document("memory/a.md", "the harbour wall"), make_document("memory/b.md", "our dog sleeps"))
    assert worded(ledger, "our") == ["our dog sleeps"]


# -- questions of common words ---------------------------------------------------------------------------------


@pytest.fixture
def few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory in which a word is common that seven chunks have."""
    monkeypatch.setattr("memoryd.store.search.legs._MOST_WORDS", 6)


def put_in_turn(ledger: Ledger, *texts: str) -> None:
    for number, text in enumerate(texts):
        ledger.put(make_document(f"{number}.md", f"{text}, number {number}\n"))


def numbers(ledger: Ledger, query: str, documents: frozenset[int] | None = None) -> list[int]:
    with ledger.database.read() as sql:
        ranking = words_leg(sql, build_query(query), 100, Visible(documents)).ranking
    texts = {identity: text for text, identity in ledger.chunk_ids().items()}
    assert all(0 < place.share < 1 for place in ranking.values())
    return [int(texts[chunk].rsplit(maxsplit=1)[-1]) for chunk in ranking]


@pytest.mark.usefixtures("few_places")
def test_of_common_words_alone_the_newest_chunks_are_found_and_those_with_more_of_them_come_first(
    ledger: Ledger,
) -> None:
    put_in_turn(ledger, *["server boat"] * 6, *["server", "boat"] * 6, "server boat", "server", "boat")
    found = numbers(ledger, "server boat")
    assert found[0] == 18
    assert {19, 20} < set(found)
    assert min(found) > 6


@pytest.fixture(params=["document by document", "further and further back"])
def filtered(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways in which the chunks with common words are found that a filter leaves."""
    if request.param == "further and further back":
        monkeypatch.setattr("memoryd.store.search.legs._FEW_DOCUMENTS", 0)
        monkeypatch.setattr("memoryd.store.search.legs._ENOUGH", 3)


@pytest.mark.usefixtures("few_places", "filtered")
@pytest.mark.parametrize("wanted", [(0, 2), (0,), (19,), (3, 17, 18), ()])
def test_a_filter_does_not_starve_a_question_of_common_words(ledger: Ledger, wanted: tuple[int, ...]) -> None:
    put_in_turn(ledger, *["server boat"] * 20)
    documents = frozenset(document_id("home", f"{number}.md") for number in wanted)
    assert sorted(numbers(ledger, "server boat", documents)) == list(wanted)


@pytest.mark.usefixtures("few_places")
def test_with_a_filter_the_newest_chunks_that_it_leaves_are_enough(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryd.store.search.legs._FEW_DOCUMENTS", 0)
    monkeypatch.setattr("memoryd.store.search.legs._ENOUGH", 4)
    put_in_turn(ledger, *["server boat"] * 60)
    documents = frozenset(document_id("home", f"{number}.md") for number in range(0, 60, 2))
    found = numbers(ledger, "server boat", documents)
    assert 4 <= len(found) < 30
    assert sorted(found) == list(range(60 - 2 * len(found), 60, 2))  # no gap in between


@pytest.mark.usefixtures("few_places")
def test_one_rarer_word_is_looked_for_in_the_whole_memory(ledger: Ledger) -> None:
    put_in_turn(ledger, "a zeppelin and a server", *["server boat"] * 20)
    assert numbers(ledger, "server zeppelin boat")[0] == 0


# -- what a leg says of chunks that it does not bring -----------------------------------------------------------


@pytest.mark.parametrize("leg", [words_leg, trigram_leg])
def test_leg_knows_the_places_of_what_it_does_not_bring(ledger: Ledger, leg: Callable[..., KeywordLeg]) -> None:
    texts = [f"{'garden ' * (1 + number % 4)}{'water ' * (number % 3)}{'bed ' * number}\n" for number in range(20)]
    ledger.put(*(make_document(f"{number}.md", text) for number, text in enumerate([*texts, "nothing of it\n"])))
    every = ledger.chunk_ids().values()
    with ledger.database.read() as sql:
        query = build_query("garden water")
        few, all_of_them = (leg(sql, query, limit, Visible()) for limit in (3, 100))
    assert len(few.ranking) == 3
    assert len(all_of_them.ranking) == 20  # not what has nothing of it
    completed = few.and_of(every).ranking
    assert completed.keys() == all_of_them.ranking.keys()
    for chunk, place in completed.items():
        assert place[1:3] == pytest.approx(all_of_them.ranking[chunk][1:3])
    assert {chunk: completed[chunk] for chunk in few.ranking} == few.ranking


def test_leg_knows_where_a_chunk_stands_by_what_is_above_it(ledger: Ledger) -> None:
    ledger.put(*(make_document(f"{number}.md", f"garden {'bed ' * number}\n") for number in range(20)))
    last = max(ledger.chunk_ids().items(), key=lambda each: len(each[0]))[1]
    with ledger.database.read() as sql:
        leg = words_leg(sql, build_query("garden"), 3, Visible())
    assert leg.and_of([last]).ranking[last].rank == 20


def test_leg_that_found_nothing_says_nothing_of_others(ledger: Ledger) -> None:
    ledger.put(make_document("a.md", "something else\n"))
    with ledger.database.read() as sql:
        assert words_leg(sql, build_query("garden"), 3, Visible()).and_of([1, 2]).ranking == {}


@pytest.mark.usefixtures("few_places")
def test_of_common_words_places_are_known_too(ledger: Ledger) -> None:
    put_in_turn(ledger, *["server boat"] * 20)
    with ledger.database.read() as sql:
        leg = words_leg(sql, build_query("server boat"), 2, Visible())
    more = leg.and_of(ledger.chunk_ids().values())
    assert len(leg.ranking) == 2 < len(more.ranking)
    assert {place.share for place in more.ranking.values()} == {place.share for place in leg.ranking.values()}


@pytest.mark.parametrize("leg", [words_leg, trigram_leg])
def test_rank_does_not_tell_of_chunks_that_are_hidden(ledger: Ledger, leg: Callable[..., KeywordLeg]) -> None:
    ledger.put(*(make_document(f"{number}.md", f"garden {'bed ' * number}\n") for number in range(20)))
    chunks = [chunk for _, chunk in sorted(ledger.chunk_ids().items(), key=lambda each: len(each[0]))]
    seen = frozenset(document_id("home", f"{number}.md") for number in (5, 10, 15))
    with ledger.database.read() as sql:
        only = leg(sql, build_query("garden"), 1, Visible(seen))
        rest = leg(sql, build_query("garden"), 1, Visible(None, frozenset(chunks[:15])))
    ranks = {chunk: place.rank for chunk, place in only.and_of([chunks[10], chunks[15]]).ranking.items()}
    assert ranks == {chunks[5]: 1, chunks[10]: 2, chunks[15]: 3}
    assert list(rest.ranking) == [chunks[15]]
    assert rest.and_of([chunks[19]]).ranking[chunks[19]].rank == 5
