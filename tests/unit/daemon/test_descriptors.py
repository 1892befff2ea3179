"""The limit on open files is raised as far as the connections need, and no further."""

import subprocess
import sys

import pytest

# In a process of its own: a hard limit cannot be raised again.
TRY = """
import resource, sys
from memoryd.daemon.descriptors import make_room
soft, hard, connections = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(make_room(connections), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "connections", "fitting", "soft_then"),
    [
        (256, 4096, 2000, 2000, 2512),
        (4096, 4096, 2000, 2000, 4096),
        (256, 1024, 2000, 512, 1024),
        (256, 600, 2000, 300, 600),
    ],
)
def test_soft_limit_rises_to_what_is_needed_or_may_be(soft, hard, connections, fitting, soft_then):
    words = [sys.executable, "-c", TRY, str(soft), str(hard), str(connections)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert [int(word) for word in done.stdout.split()] == [fitting, soft_then, hard]
