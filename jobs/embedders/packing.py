"""How texts of different lengths share the model's batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def pack(lengths: Sequence[int], capacity: int, most: int) -> Iterator[list[int]]:
    """Groups of indices whose lengths sum to at most ``capacity``, ``most`` to a group, every index once.

    Longest first: what is short fills the gaps at the end, and a batch of equals wastes least attention on
    pairs of tokens that belong to different texts.
    """
    group: list[int] = []
    used = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if group and (used + lengths[index] > capacity or len(group) == most):
            yield group
            group, used = [], 0
        group.append(index)
        used += lengths[index]
    if group:
        yield group
