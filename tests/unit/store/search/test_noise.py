from __future__ import annotations

import json

import pytest

from memoryd.store.protocols import Vectors
from memoryd.store.search.calibration import calibrate_noise, calibration_due, make_nonsense
from memoryd.store.search.noise import Noise, read_noise, script_of
from memoryd.store.search.pipeline import search
from memoryd.store.search.request import SearchQuery, SearchSettings
from memoryd.store.search.unrelated import UNRELATED
from tests.support.documents import make_document
from tests.support.ledger import Ledger
from tests.unit.store.search.test_pipeline import TODAY, Meaning, meaning  # noqa: F401 - a fixture

ENGLISH = [
    f"the {thing} stood beside a {other} all day\n"
    for thing in ("mill", "barn", "well")
    for other in ("hill", "oak", "gate", "road")
]
CHINESE = [
    f"今天我们讨论了{thing}的{other}问题\n"
    for thing in ("数据库", "服务器", "花园")
    for other in ("备份", "温度", "价格", "安全")
]


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("where is the key", "latin"),
        ("Schlüssel für die Tür", "latin"),
        ("где ключ", "cyrillic"),
        ("أين المفتاح", "arabic"),
        ("열쇠는 어디에", "hangul"),
        ("备份在哪里", "han"),
        ("バックアップの場所はｻｰﾊﾞｰ", "han"),
        ("ภาษาไทย", "thai"),
        ("数据库 backup", "latin"),
        ("ｆｕｌｌ ｗｉｄｔｈ", "latin"),
        ("用 SQL 备份数据库的办法", "han"),
        ("2026", ""),
        ("", ""),
    ],
)
def test_script_is_that_of_most_letters(text: str, script: str) -> None:
    assert script_of(text) == script


def test_nonsense_is_made_of_words_from_different_passages() -> None:
    queries = make_nonsense(ENGLISH, "latin")
    assert len(set(queries)) > 20
    assert all(word in " ".join(ENGLISH) for query in queries for word in query.split())
    assert not any(query in text for query in queries for text in ENGLISH)
    assert make_nonsense(ENGLISH, "latin") == queries


def test_nonsense_of_unspaced_scripts_is_one_run() -> None:
    assert {len(query) for query in make_nonsense(CHINESE, "han")} == {15}


def test_too_few_passages_make_no_nonsense() -> None:
    assert make_nonsense(ENGLISH[:7], "latin") == []
    assert make_nonsense(["123 456\n"] * 20, "latin") == []


def calibrated(ledger: Ledger, meaning: Meaning, *texts: str) -> dict[str, Noise]:  # noqa: F811
    for number, text in enumerate(texts):
        ledger.put(make_document(f"{number}.md", text))
    meaning.learn()
    return calibrate_noise(ledger.database, meaning, fingerprint(ledger))


def fingerprint(ledger: Ledger) -> str:
    with ledger.database.read() as sql:
        return str(sql.execute("SELECT fingerprint FROM generations WHERE active").fetchone()[0])


def test_noise_is_measured_for_each_script_and_kept(ledger: Ledger, meaning: Meaning) -> None:  # noqa: F811
    measured = calibrated(ledger, meaning, *ENGLISH, *CHINESE)
    assert measured.keys() == {"latin", "han"}
    for noise in measured.values():
        assert noise.shares.keys() == {"words", "trigram", "vector", "passage"}
        assert all(0 < share < 1 for share in noise.shares.values())
    with ledger.database.read() as sql:
        assert {script: read_noise(sql, script) for script in measured} == measured


def test_script_without_notes_takes_the_noise_of_the_other(ledger: Ledger, meaning: Meaning) -> None:  # noqa: F811
    measured = calibrated(ledger, meaning, *ENGLISH)
    with ledger.database.read() as sql:
        assert read_noise(sql, "han") == measured["latin"]


def test_nothing_measured_is_no_noise(ledger: Ledger) -> None:
    with ledger.database.read() as sql:
        assert read_noise(sql, "latin") == Noise()


def test_noise_is_measured_again_when_the_memory_has_changed_much(ledger: Ledger, meaning: Meaning) -> None:  # noqa: F811
    def due() -> bool:
        with ledger.database.read() as sql:
            return calibration_due(sql, fingerprint(ledger))

    assert not due()  # there is nothing
    ledger.put(make_document("0.md", ENGLISH[0]))
    assert due()
    calibrated(ledger, meaning, *ENGLISH)
    assert not due()
    ledger.put(make_document("more.md", "one more\n"))
    assert not due()
    ledger.put(make_document("many.md", *(f"yet another note, number {number}\n" for number in range(5))))
    assert due()
    with ledger.database.read() as sql:
        assert calibration_due(sql, "another model")


def test_nonsense_scores_what_noise_is_said_to_score(ledger: Ledger, meaning: Meaning) -> None:  # noqa: F811
    calibrated(ledger, meaning, *ENGLISH)
    best = []
    for query in make_nonsense(ENGLISH, "latin"):
        answer = search(SearchQuery(query, TODAY), SearchSettings(), ledger.database, meaning, list)
        best.append(max(hit.score for hit in answer.hits))
    assert sum(best) / len(best) == pytest.approx(0.3, abs=0.08)


def test_record_is_plain_json(ledger: Ledger, meaning: Meaning) -> None:  # noqa: F811
    calibrated(ledger, meaning, *ENGLISH)
    with ledger.database.read() as sql:
        (kept,) = sql.execute("SELECT value FROM meta WHERE key LIKE 'noise:%'").fetchone()
    assert json.loads(kept)["chunks"] == len(ENGLISH)


def test_record_can_be_read_by_a_memoryd_that_knows_less(ledger: Ledger, meaning: Meaning) -> None:  # noqa: F811
    """What a script's part may hold is part of NOISE_VERSION: an older one that finds more there fails each search."""
    calibrated(ledger, meaning, *ENGLISH)
    with ledger.database.read() as sql:
        (kept,) = sql.execute("SELECT value FROM meta WHERE key LIKE 'noise:%'").fetchone()
        assert read_noise(sql, "latin").chunks == len(ENGLISH)
    assert json.loads(kept)["version"] == 10
    assert json.loads(kept)["scripts"]["latin"].keys() == {"shares", "floor", "part", "spread"}


def test_small_memory_teaches_nothing_but_that_it_was_looked_at(ledger: Ledger, meaning: Meaning) -> None:  # noqa: F811
    assert calibrated(ledger, meaning, *ENGLISH[:9]) == {}
    with ledger.database.read() as sql:
        assert read_noise(sql, "latin") == Noise(chunks=9)
        assert read_noise(sql, "han") == Noise(chunks=9)  # nothing is written in it


def test_what_the_model_makes_of_a_script_is_known_with_the_first_note_in_it(
    ledger: Ledger,
    meaning: Meaning,  # noqa: F811
) -> None:
    assert calibrated(ledger, meaning, *ENGLISH[:4], CHINESE[0], "Η όπερα αρχίζει με μια καταιγίδα\n") == {}
    with ledger.database.read() as sql:
        noises = {script: read_noise(sql, script) for script in ("han", "greek")}
        latin = read_noise(sql, "latin")
    for noise in noises.values():
        assert noise.shares == {}
        assert 0 < noise.floor < 1
        assert noise.spread <= 1.0
    assert noises["han"].floor != noises["greek"].floor
    assert latin == Noise(chunks=6)


def test_with_a_few_notes_in_a_script_the_legs_are_as_for_the_commonest(ledger: Ledger, meaning: Meaning) -> None:  # noqa: F811
    measured = calibrated(ledger, meaning, *ENGLISH, *CHINESE[:2])
    assert measured.keys() == {"latin"}
    with ledger.database.read() as sql:
        noise = read_noise(sql, "han")
    assert noise.shares == measured["latin"].shares
    assert noise.floor != measured["latin"].floor


def test_what_the_model_makes_of_a_script_is_measured_once(ledger: Ledger, meaning: Meaning) -> None:  # noqa: F811
    calibrated(ledger, meaning, CHINESE[0])
    asked: list[str] = []

    def embed(text: str) -> Vectors:
        asked.append(text)
        return meaning.embedder.embed_query(text)

    meaning.embed_query = embed  # type: ignore[method-assign]
    assert calibrate_noise(ledger.database, meaning, fingerprint(ledger)) == {}
    assert asked == []
    ledger.put(make_document("greek.md", "Η όπερα αρχίζει με μια καταιγίδα\n"))
    assert calibrate_noise(ledger.database, meaning, fingerprint(ledger)) == {}
    assert {script_of(text) for text in asked} == {"greek"}


def test_sentences_are_the_same_dozen_in_each_language() -> None:
    for script, languages in UNRELATED.items():
        assert {len(sentences) for sentences in languages} == {12}
        assert {script_of(sentence) for sentences in languages for sentence in sentences} == {script}


def test_what_was_measured_in_another_way_tells_nothing(ledger: Ledger, meaning: Meaning) -> None:  # noqa: F811
    calibrated(ledger, meaning, *ENGLISH)
    with ledger.database.write() as sql:
        sql.execute("UPDATE meta SET value = json_set(value, '$.version', 9) WHERE key LIKE 'noise:%'")
    with ledger.database.read() as sql:
        assert read_noise(sql, "latin") == Noise()
        assert calibration_due(sql, fingerprint(ledger))


def test_memory_that_repeats_itself_silences_no_leg(ledger: Ledger, meaning: Meaning) -> None:  # noqa: F811
    for number in range(12):
        ledger.put(make_document(f"{number}.md", "the lighthouse keeper\n"))
    meaning.learn()
    (noise,) = calibrate_noise(ledger.database, meaning, fingerprint(ledger)).values()
    assert max(noise.shares.values()) <= 0.6
    assert noise.floor <= 0.8
    answer = search(SearchQuery("lighthouse", TODAY), SearchSettings(), ledger.database, meaning, list)
    assert answer.hits
