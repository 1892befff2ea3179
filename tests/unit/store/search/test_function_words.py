from __future__ import annotations

import pytest

from memoryd.store.folding import split_words
from memoryd.store.search.function_words import function_words


@pytest.mark.parametrize(
    ("query", "telling"),
    [
        ("where did we put the spare keys", "put spare keys"),
        ("Wo ist der Haupthahn zum Abdrehen des Wassers?", "haupthahn abdrehen wassers"),
        ("Was kostet der neue Gartenzaun", "kostet neue gartenzaun"),
        ("où est la clé de la cave", "clé cave"),
        ("¿Dónde está la llave del garaje?", "llave garaje"),
        ("quando scade il contratto della casa", "scade contratto casa"),
        ("onde está a chave do carro", "chave carro"),
        ("waar is de sleutel van de schuur", "sleutel schuur"),
        ("gdzie jest klucz do garażu", "klucz garażu"),
        ("когда сажать чеснок", "сажать чеснок"),
        ("πού είναι το κλειδί", "κλειδι"),
        ("أين مفتاح السيارة", "مفتاح السيارة"),
        ("איפה המפתח של המחסן", "המפתח המחסן"),
        ("चाबी कहाँ है", "चाबी"),
        ("চাবি কোথায় আছে", "চাবি"),
        ("anahtar nerede ve ne zaman", "anahtar"),
        ("chìa khóa ở đâu", "chìa khóa"),
        # One such word is no language: it may be a name, a port or a museum.
        ("MIT license", "mit license"),
        ("trip to Las Vegas", "trip las vegas"),
        ("the pod that restarts", "pod restarts"),
        ("备份 数据库", "备份 数据 据库"),
    ],
)
def test_what_is_left_is_what_the_query_is_about(query: str, telling: str) -> None:
    words = split_words(query)
    functional = function_words(words)
    assert " ".join(word for word in words if word not in functional) == telling
