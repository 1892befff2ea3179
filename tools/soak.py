"""The long form of the fault suite: `make soak MINUTES=30`.

Three fifths of the time the daemon is killed at random moments while files change, and after every few kills the
index must equal one made anew from the same files. The rest of the time one daemon lives, is edited and searched,
and must neither grow nor keep files open. Exit code 1 if anything diverged.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from memoryd.daemon.config import Config
from memoryd.daemon.paths import find_paths
from memoryd.jobs.models.catalogue import DEFAULT_MODEL
from memoryd.jobs.models.install import install
from tests.faults.test_bursts import A_MINUTE, REST_S, REWRITES, arrive_at_once, save_again_and_again
from tests.support.daemon import Daemon, Machine, make_machine
from tests.support.soundness import OFTEN, check_layout, check_like_fresh, check_sound, tidy
from tests.support.storm import WORDS, Storm
from tests.support.waiting import eventually

KILLS_A_ROUND = 10
KILLED_SHARE = 0.6  # of the time
WARM_UP_SHARE = 1 / 3  # of the one daemon's life
RSS_BAR = 5.0  # per cent
JUDGED_S = 180.0  # a shorter life is still warming up
MANY_FILES = 10_000
MANY_MINUTES = 15.0  # from so long a run on there is time for them
FILES = 20


@dataclass(frozen=True, slots=True)
class Sample:
    """What the daemon holds at a moment."""

    rss: int  # bytes
    descriptors: int


@dataclass
class Tally:
    began: float = field(default_factory=time.monotonic)
    kills: int = 0
    edits: int = 0
    searches: int = 0
    divergences: int = 0
    life_s: float = 0.0
    warm: Sample | None = None
    last: Sample | None = None

    def growth(self) -> float:
        return 0.0 if self.warm is None or self.last is None else (self.last.rss / self.warm.rss - 1) * 100

    def is_bad(self) -> bool:
        return self.divergences > 0 or (self.life_s >= JUDGED_S and self.growth() > RSS_BAR)

    def summary(self) -> str:
        judged = "" if self.life_s >= JUDGED_S else ", too short a life to judge"
        descriptors = (
            f"{self.warm.descriptors} → {self.last.descriptors}" if self.warm and self.last else "not measured"
        )
        return (
            f"soak: {(time.monotonic() - self.began) / 60:.1f} minutes, {self.kills} kills, {self.edits} edits, "
            f"{self.searches} searches, {self.divergences} divergences, RSS {self.growth():+.1f} % after warm-up "
            f"(bar {RSS_BAR:g} %{judged}), descriptors {descriptors}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=None, help="of the edits and the moments; printed, to run it again")
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if arguments.seed is None else arguments.seed
    models = find_paths(Config(), os.environ).models_dir
    install(DEFAULT_MODEL, models)
    folder = Path(tempfile.mkdtemp(prefix="memoryd-soak-"))
    print(f"seed {seed}, in {folder}", flush=True)
    tally, end = Tally(), time.monotonic() + arguments.minutes * 60
    killed_until = time.monotonic() + arguments.minutes * 60 * KILLED_SHARE
    round_ = 0
    while time.monotonic() < killed_until:
        round_ += 1
        with diverging(tally, f"round {round_}"), machine_in(folder / f"{round_}", models) as machine:
            kill_again_and_again(machine, seed + round_, tally, folder / "fresh")
        progress(tally, f"round {round_}")
    if arguments.minutes >= MANY_MINUTES:
        with diverging(tally, "many files"), machine_in(folder / "many", models) as machine:
            have_many_files_arrive(machine)
        progress(tally, f"{MANY_FILES} files at once")
        with diverging(tally, "many saves"), machine_in(folder / "saves", models) as machine:
            save_for_a_minute(machine)
        progress(tally, f"one file saved {REWRITES} times in a minute")
    with diverging(tally, "a long life"), machine_in(folder / "life", models) as machine:
        live(machine, seed, tally, max(30.0, end - time.monotonic()))
    print(tally.summary(), flush=True)
    if not tally.divergences:  # else what is left there may tell why
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if tally.is_bad() else 0


def kill_again_and_again(machine: Machine, seed: int, tally: Tally, fresh: Path) -> None:
    storm = Storm(machine, seed)
    storm.begin(FILES)
    try:
        for _ in range(KILLS_A_ROUND):
            storm.run_and_kill()
    finally:
        tally.kills += storm.kills
        tally.edits += storm.edits
    machine.env = OFTEN
    with machine.daemon() as daemon:
        proof = check_sound(daemon)
        assert proof["documents"] == len(storm.notes()), proof
        tally.searches += search(daemon, storm.chance, 5)
        tidy(daemon)
    check_layout(machine)
    check_like_fresh(machine, fresh, proof)


def have_many_files_arrive(machine: Machine) -> None:
    daemon = machine.start()
    try:
        daemon.wait_until_it_answers()
        arrive_at_once(machine, MANY_FILES)
        eventually(lambda: daemon.call("status", brief=True)["documents"] == MANY_FILES, 600, "every file is indexed")
        for number in (0, MANY_FILES // 2, MANY_FILES - 1):
            assert daemon.found(f"n{number}n") == [f"memory/many/{number}.md"]
    finally:
        daemon.kill()


def save_for_a_minute(machine: Machine) -> None:
    with machine.daemon() as daemon:
        computed, took = save_again_and_again(machine, daemon, REWRITES, A_MINUTE / REWRITES)
        assert computed <= took / REST_S + 2, f"{computed} embeddings in {took:.0f} s"


def live(machine: Machine, seed: int, tally: Tally, seconds: float) -> None:
    """One daemon, edited and searched; what it holds after warming up and at the end."""
    storm = Storm(machine, seed)
    storm.begin(FILES)
    began = time.monotonic()
    samples: list[Sample] = []
    machine.env = {"MEMORYD_SCHEDULE__MAINTAIN_MINUTES": "0.5"}
    with machine.daemon() as daemon:
        daemon.settle()
        while (lived := time.monotonic() - began) < seconds:
            storm.edit()
            tally.searches += search(daemon, storm.chance, 3)
            daemon.settle()
            if lived > seconds * WARM_UP_SHARE:
                samples.append(take_sample(daemon))
        check_sound(daemon)
    tally.edits += storm.edits
    tally.life_s = time.monotonic() - began
    tenth = max(1, len(samples) // 10)
    tally.warm, tally.last = middle(samples[:tenth]), middle(samples[-tenth:])


def search(daemon: Daemon, chance: random.Random, times: int) -> int:
    for _ in range(times):
        daemon.call("search", query=" ".join(chance.choices(WORDS, k=3)))
    return times


def take_sample(daemon: Daemon) -> Sample:
    process = Path(f"/proc/{daemon.process.pid}")
    pages = int((process / "statm").read_text().split()[1])
    return Sample(pages * os.sysconf("SC_PAGE_SIZE"), len(list((process / "fd").iterdir())))


def middle(samples: list[Sample]) -> Sample:
    return Sample(
        int(statistics.median(sample.rss for sample in samples)),
        int(statistics.median(sample.descriptors for sample in samples)),
    )


@contextmanager
def machine_in(folder: Path, models: Path) -> Iterator[Machine]:
    folder.mkdir()
    with make_machine(folder, models) as machine:
        yield machine


@contextmanager
def diverging(tally: Tally, what: str) -> Iterator[None]:
    """Count what is not as it must be, and go on: the next round may tell more."""
    try:
        yield
    except AssertionError as error:
        tally.divergences += 1
        where = traceback.extract_tb(error.__traceback__)[-1]
        print(f"{what} DIVERGED: {str(error) or where.line} ({Path(where.filename).name}:{where.lineno})", flush=True)


def progress(tally: Tally, what: str) -> None:
    minutes = (time.monotonic() - tally.began) / 60
    print(
        f"{minutes:5.1f} min  {what}: {tally.kills} kills, {tally.edits} edits, {tally.divergences} divergences",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
