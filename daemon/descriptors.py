"""How many files the process may hold open: every connection is one."""

from __future__ import annotations

import resource

RESERVED = 512  # for the stores, the models, the watcher and the files that are being read


def make_room(connections: int) -> int:
    """Raises the soft limit as far as so many connections need; returns how many fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + RESERVED
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return connections
    # With a limit too low for both, each gets half: a daemon that can serve nobody is no daemon.
    return min(connections, max(soft - RESERVED, soft // 2))
