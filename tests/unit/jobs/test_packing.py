"""How texts share passes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoryd.jobs.embedders.fingerprint import fingerprint
from memoryd.jobs.embedders.packing import pack


@given(st.lists(st.integers(1, 512)), st.integers(1, 600), st.integers(1, 64))
def test_every_text_is_packed_once_and_no_group_is_too_large(lengths: list[int], capacity: int, most: int) -> None:
    groups = list(pack(lengths, capacity, most))
    assert sorted(index for group in groups for index in group) == list(range(len(lengths)))
    for group in groups:
        assert len(group) <= most
        assert len(group) == 1 or sum(lengths[index] for index in group) <= capacity


def test_texts_of_a_group_are_of_like_length() -> None:
    assert list(pack([10, 200, 11, 190, 9], 256, 64)) == [[1], [3, 2, 0, 4]]


def test_fingerprint_depends_on_where_parts_end() -> None:
    assert fingerprint("ab", "c") != fingerprint("a", "bc")
    assert fingerprint("a", "") != fingerprint("a")
    assert len(fingerprint("a")) == 16
