"""How many threads a question gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.jobs.llama_library import _threads_beside, is_virtual


@pytest.mark.parametrize(
    ("threads", "cores", "virtual", "wanted"),
    [
        (4, 8, False, 4),
        (4, 4, False, 3),  # the words of the question have the other one
        (2, 2, False, 1),
        (1, 1, False, 1),
        (4, 8, True, 1),  # a thread that slept would be woken where the first one works
    ],
)
def test_a_core_is_left_to_the_words(threads: int, cores: int, virtual: bool, wanted: int) -> None:
    assert _threads_beside(threads, cores, virtual=virtual) == wanted


def test_virtual_machine_says_so(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    assert not is_virtual(cpuinfo)  # where there is none
    cpuinfo.write_text("processor\t: 0\nflags\t\t: fpu avx2 rdrand hypervisor lahf_lm\nbugs\t\t: spectre\n")
    assert is_virtual(cpuinfo)
    cpuinfo.write_text("model name\t: A hypervisor\nflags\t\t: fpu avx2 hypervisors\n")
    assert not is_virtual(cpuinfo)
