"""Notes in many languages, asked by their words alone: with other endings, without accents, with points."""

from __future__ import annotations

import pytest

from memoryd.store.search.pipeline import search
from memoryd.store.search.request import SearchQuery, SearchSettings
from tests.support.documents import make_document
from tests.support.ledger import Ledger
from tests.unit.store.search.test_pipeline import LEXICAL, TODAY, Forbidden

NOTES = {
    "arabic.md": "مفاتيح السيارة في الدرج الأيمن. موعد طبيب الأسنان يوم الثلاثاء.\n",
    "bengali.md": "অতিরিক্ত চাবি রান্নাঘরের ড্রয়ারে আছে। দাঁতের ডাক্তার মঙ্গলবার।\n",
    "english.md": "The spare keys are in the kitchen drawer. Melanie sees the dentist on Tuesday.\n",
    "greek.md": "Τα εφεδρικά κλειδιά είναι στο συρτάρι της κουζίνας. Οδοντίατρος την Τρίτη.\n",
    "hebrew.md": "המפתחות הרזרביים במגירה במטבח. רופא שיניים ביום שלישי.\n",
    "hindi.md": "चाबियाँ नीली अलमारी में रखी हैं। गैस सिलेंडर हर दो महीने में बदलना है।\n",
    "japanese.md": "予備の鍵は台所の引き出しにある。歯医者は火曜日。\n",
    "korean.md": "여분의 열쇠는 부엌 서랍에 있다. 치과는 화요일이다.\n",
    "polish.md": "Zapasowe klucze leżą w szufladzie w kuchni. Dentysta we wtorek.\n",
    "russian.md": "Запасные ключи лежат в ящике на кухне. Зубной врач во вторник, про свёклу не забыть.\n",
    "tamil.md": "உதிரி சாவி சமையலறை இழுப்பறையில் உள்ளது. பல் மருத்துவர் செவ்வாய்க்கிழமை.\n",
    "thai.md": "กุญแจสำรองอยู่ในลิ้นชักห้องครัว นัดหมอฟันวันอังคาร\n",
    "turkish.md": "Yedek anahtarlar mutfak çekmecesinde. Diş hekimi randevusu salı günü.\n",
    "vietnamese.md": "Chìa khóa dự phòng ở trong ngăn kéo nhà bếp. Hẹn nha sĩ thứ ba.\n",
}


@pytest.fixture
def household(ledger: Ledger) -> Ledger:
    ledger.put(*(make_document(path, text) for path, text in NOTES.items()))
    return ledger


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("أين مفاتيح السيارة", "arabic.md"),
        ("مَفاتيح السَّيّارة", "arabic.md"),  # with points
        ("চাবি কোথায়", "bengali.md"),
        ("what’s Melanie's appointment", "english.md"),
        ("πού είναι το κλειδί", "greek.md"),
        ("οδοντιάτρου", "greek.md"),  # its accent has moved
        ("איפה המפתח", "hebrew.md"),
        ("गैस सिलेंडर कब बदलना है", "hindi.md"),
        ("鍵はどこ", "japanese.md"),
        ("열쇠가 어디에 있지", "korean.md"),
        ("gdzie są klucze", "polish.md"),
        ("где запасной ключ", "russian.md"),
        ("свеклой", "russian.md"),
        ("சாவி எங்கே", "tamil.md"),
        ("กุญแจอยู่ที่ไหน", "thai.md"),
        ("yedek anahtar nerede", "turkish.md"),
        ("chia khoa o dau", "vietnamese.md"),
    ],
)
def test_note_is_the_first_hit_for_a_question_in_its_language(query: str, path: str, household: Ledger) -> None:
    settings = SearchSettings(weights=LEXICAL)
    answer = search(SearchQuery(query, TODAY), settings, household.database, Forbidden(), list)
    assert [hit.path for hit in answer.hits][:1] == [path]


@pytest.mark.parametrize("query", ["किताब का नाम", "όνομα βιβλίου", "اسم الكتاب", "название книги", "புத்தகத்தின் பெயர்"])
def test_what_no_note_has_is_met_with_silence(query: str, household: Ledger) -> None:
    settings = SearchSettings(weights=LEXICAL)
    answer = search(SearchQuery(query, TODAY), settings, household.database, Forbidden(), list)
    assert answer.hits == []
    assert answer.absence
