from __future__ import annotations

import pytest

from memoryd.store.naming import indexed_heading, name_of


@pytest.mark.parametrize(
    ("path", "source", "name"),
    [
        ("MEMORY.md", "memory", "MEMORY.md"),
        ("memory/wifi.md", "memory", "wifi.md"),
        ("memory/incidents/2026-08-27-dns-outage.md", "memory", "incidents/2026-08-27-dns-outage.md"),
        ("skills/espresso-descaling/SKILL.md", "skills", "espresso-descaling/SKILL.md"),
        ("recipes/tiramisu.md", "memory", "recipes/tiramisu.md"),
    ],
)
def test_name_is_the_path_without_the_folder_of_its_source(path: str, source: str, name: str) -> None:
    assert name_of(path, source) == name


@pytest.mark.parametrize("source", ["facts", "sessions"])
def test_what_is_named_by_numbers_has_no_name(source: str) -> None:
    assert name_of("notes/8c1f09.md", source) == ""
    assert indexed_heading("Wi-Fi", "notes/8c1f09.md", source) == "Wi-Fi"


def test_name_stands_behind_the_breadcrumb() -> None:
    assert indexed_heading("House > Network", "memory/wifi.md", "memory") == "House > Network > wifi.md"
    assert indexed_heading("", "memory/wifi.md", "memory") == "wifi.md"


def test_chunk_whose_document_is_lost_has_its_breadcrumb_still() -> None:
    assert indexed_heading("House > Network", None, None) == "House > Network"
