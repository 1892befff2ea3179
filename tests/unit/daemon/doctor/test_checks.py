"""What the doctor makes of facts: each check, when all is well and when it is not."""

from __future__ import annotations

import stat
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from memoryd.daemon.config import Config, Index, Llm, Sessions
from memoryd.daemon.doctor.finding import Finding
from memoryd.daemon.doctor.folders import (
    FolderFacts,
    check_file_system,
    check_folder,
    check_space,
    file_system_of,
)
from memoryd.daemon.doctor.inotify import InotifyFacts, check_instances, check_queue, check_watches
from memoryd.daemon.doctor.machine import MachineFacts, check_clock, check_locale, check_processor, check_sqlite
from memoryd.daemon.doctor.model import ModelFacts, check_language_model, check_model
from memoryd.daemon.doctor.notes import (
    NotesFacts,
    check_dates,
    check_languages,
    check_notes_file_system,
    check_passed_over,
    check_workspace,
)
from memoryd.daemon.doctor.pauses import check_pauses
from memoryd.daemon.doctor.process import (
    ProcessFacts,
    check_daemon,
    check_health,
    check_open_files,
    check_others,
    check_socket,
    check_version,
    is_daemon,
)
from memoryd.daemon.doctor.provider import ProviderFacts, check_provider
from memoryd.daemon.doctor.sessions import check_sessions, gather_sessions
from memoryd.daemon.doctor.units import UnitFacts, check_unit, differing_keys, program_of
from memoryd.jobs.surroundings import Surroundings

INOTIFY = InotifyFacts(8192, 128, 16384, watches=100, instances=10, folders=20, workspaces=1)
FOLDER = FolderFacts(Path("/d"), True, True, False, 1000, 0o700, True, 50_000_000_000, 10**6, "ext4")
MACHINE = MachineFacts(
    sqlite="3.45.1",
    trigram_error=None,
    file_names="utf-8",
    output="UTF-8",
    now=2_000_000_000.0,
    program_date=1_999_000_000.0,
    processor=frozenset({"avx", "avx2", "fma", "f16c"}),
    llama="CPU : AVX = 1 | AVX2 = 1 | F16C = 1 | FMA = 1 | OPENMP = 1 | REPACK = 1 | ",
    llama_error=None,
)
MODEL = ModelFacts("all-minilm-l6-v2", Path("/m.gguf"), True, "ab", "ab", None, None, "bert")
NOTES = NotesFacts("notes", Path("/n"), files=3, file_system="ext4")
STATUS: dict[str, Any] = {"pid": 7, "version": "1.0", "health": {"reasons": []}}
PROCESS = ProcessFacts(STATUS, None, "1.0", Path("/s"), stat.S_IFSOCK | 0o600, 7, (), 20_000)
UNIT = UnitFacts(
    "memoryd.service", Path("/u"), "[Service]\nNice=5\n", "[Service]\nNice=5\n", (), "/bin/memoryd", program_runs=True
)


def well(finding: Finding) -> None:
    assert finding.state == "ok", finding
    assert finding.fix is None


def bad(finding: Finding, state: str, *words: str) -> None:
    """What is not well says why, and what to do."""
    assert finding.state == state, finding
    assert finding.fix
    for word in words:
        assert word in f"{finding.message} {finding.fix} {finding.details}", finding


def test_inotify_watches() -> None:
    well(check_watches(INOTIFY))
    well(check_watches(replace(INOTIFY, watches=8190, folders=0)))  # nothing is wanted, so nothing is lacking
    bad(check_watches(replace(INOTIFY, folders=9000)), "problem", "fs.inotify.max_user_watches=18200", "sysctl")
    bad(check_watches(replace(INOTIFY, watches=8000)), "warning", "nearly")
    bad(check_watches(replace(INOTIFY, max_watches=None)), "warning", "cannot be read")


def test_inotify_instances() -> None:
    well(check_instances(INOTIFY))
    bad(check_instances(replace(INOTIFY, instances=128)), "problem", "max_user_instances=258")


def test_inotify_queue() -> None:
    well(check_queue(INOTIFY))
    bad(check_queue(replace(INOTIFY, max_queued=64)), "warning", "max_queued_events")


def test_folder() -> None:
    def check(facts: FolderFacts) -> Finding:
        return check_folder("data folder", "paths.data", facts, uid=1000)

    well(check(FOLDER))
    well(check(replace(FOLDER, exists=False, owner=0, mode=0o755)))  # it will be made
    bad(check(replace(FOLDER, mode=0o755)), "warning", "chmod 700 /d")
    bad(check(replace(FOLDER, owner=0)), "problem", "user 0")
    bad(check(replace(FOLDER, writable=False)), "problem", "paths.data")
    bad(check(replace(FOLDER, is_symlink=True)), "problem", "symlink")
    bad(check(replace(FOLDER, is_folder=False)), "problem", "not a folder")


def test_disk_space() -> None:
    well(check_space("disk", FOLDER, 0))
    well(check_space("disk", replace(FOLDER, free_inodes=None), 0))
    bad(check_space("disk", replace(FOLDER, free_bytes=900_000_000), 0), "warning", "900 MB")
    bad(check_space("disk", replace(FOLDER, free_bytes=1_000), 0), "problem")
    bad(check_space("disk", replace(FOLDER, free_bytes=400_000_000), 500_000_000), "problem", "500 MB are needed")
    bad(check_space("disk", replace(FOLDER, free_inodes=3), 0), "problem", "inodes")


def test_file_system_of_the_data() -> None:
    well(check_file_system("fs", "paths.data", FOLDER))
    bad(check_file_system("fs", "paths.data", replace(FOLDER, file_system="nfs4")), "problem", "nfs4", "paths.data")


MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home/a\040b rw shared:2 master:1 - nfs4 server:/x rw
31 22 0:41 / /home rw - btrfs /dev/sdb rw
32 31 0:42 / /home rw - xfs /dev/sdc rw
nonsense
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/etc", "ext4"), ("/", "ext4"), ("/home/me", "xfs"), ("/home/a b/notes", "nfs4"), ("/homeless", "ext4")],
)
def test_a_path_is_on_the_longest_mount_above_it_and_the_last_of_several(path: str, kind: str) -> None:
    assert file_system_of(Path(path), MOUNTS) == kind
    assert file_system_of(Path(path), "") == ""


def test_sqlite() -> None:
    well(check_sqlite(MACHINE))
    bad(check_sqlite(replace(MACHINE, sqlite="3.33.0")), "problem", "3.34")
    bad(check_sqlite(replace(MACHINE, trigram_error="no such tokenizer: trigram")), "problem", "no such tokenizer")


def test_locale() -> None:
    well(check_locale(MACHINE))
    bad(check_locale(replace(MACHINE, file_names="ascii")), "problem", "LANG=C.UTF-8")
    bad(check_locale(replace(MACHINE, output="latin-1")), "warning", "latin-1")


def test_clock() -> None:
    well(check_clock(MACHINE))
    bad(check_clock(replace(MACHINE, now=0.0)), "problem", "1970", "timedatectl")


def test_processor() -> None:
    well(check_processor(MACHINE))
    well(check_processor(replace(MACHINE, processor=frozenset())))  # ARM tells no such flags
    lacking = check_processor(replace(MACHINE, processor=frozenset({"avx", "fma", "f16c"})))
    bad(lacking, "problem", "AVX2", "llama-cpp-python")
    bad(check_processor(replace(MACHINE, llama="CPU : SSE3 = 0 | AVX2 = 0 | ")), "warning", "AVX2", "slow")
    bad(check_processor(replace(MACHINE, llama=None, llama_error="it died of signal 4")), "problem", "signal 4")


def test_provider_tells_whether_notes_leave_the_machine_and_whether_it_can_be_asked() -> None:
    remote = ProviderFacts("openai", "m", "https://api.openai.com/v1", "api.openai.com", True, "the variable X", True)
    assert "notes and queries are sent to api.openai.com" in check_provider(remote).message
    well(check_provider(remote))
    bad(check_provider(replace(remote, has_key=False)), "warning", "where the daemon starts")
    bad(check_provider(replace(remote, key_place=None, has_key=False, variable="OPENAI_API_KEY")), "problem", "OPENAI")
    bad(check_provider(replace(remote, base_url="http://gpu/v1", sends_to="gpu")), "warning", "https://")
    well(check_provider(ProviderFacts("ollama", "m", "http://127.0.0.1:11434")))
    for provider in ("none", "local", "auto"):
        well(check_provider(ProviderFacts(provider)))
    unused = check_provider(ProviderFacts("auto", others=("OPENAI_API_KEY",)))
    assert "OPENAI_API_KEY is set and not used" in unused.message
    given = check_provider(ProviderFacts("auto", fallback="voyage (the variable MEMORYD_VOYAGE_API_KEY)"))
    assert "only where the local model cannot be had" in given.message


def test_model() -> None:
    well(check_model(MODEL))
    well(check_model(replace(MODEL, spec="/m.gguf", promised=None, found=None)))
    bad(check_model(replace(MODEL, path=None)), "warning", "memoryd model install")
    bad(check_model(replace(MODEL, path=None, auto_install=False)), "problem", "memoryd model install")
    bad(check_model(replace(MODEL, path=None, spec="/gone.gguf")), "problem", "/gone.gguf")
    bad(check_model(replace(MODEL, found="cd")), "problem", "checksum")
    bad(check_model(replace(MODEL, fault="it makes no embeddings")), "problem", "it makes no embeddings")


def test_sessions(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("")
    there, nowhere = f"{tmp_path}/*.jsonl", f"{tmp_path}/none/**/*.jsonl"
    well(check_sessions(gather_sessions(Sessions())))
    well(check_sessions(gather_sessions(Sessions(enabled=True, paths=(there,)))))
    bad(check_sessions(gather_sessions(Sessions(enabled=True))), "warning", "sessions.paths")
    found = check_sessions(gather_sessions(Sessions(enabled=True, paths=(there, nowhere))))
    bad(found, "warning", "1 of 2")
    assert found.details == (nowhere,)


def test_language_model(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"")
    well(check_language_model(Config()))
    well(check_language_model(Config(llm=Llm(provider="local", model=str(tmp_path / "m.gguf")))))
    bad(check_language_model(Config(llm=Llm(provider="local", model="/gone.gguf"))), "problem", "/gone.gguf")
    remote = Llm(provider="openai-compatible", model="m", base_url="http://127.0.0.1/v1")
    well(check_language_model(Config(llm=remote)))
    unset = replace(remote, api_key_env="MEMORYD_TEST_KEY_THAT_IS_NOT_SET")
    bad(check_language_model(Config(llm=unset)), "warning", "MEMORYD_TEST_KEY_THAT_IS_NOT_SET")
    bad(check_language_model(Config(llm=replace(remote, api_key_file="/gone"))), "problem", "/gone")


def test_workspace() -> None:
    well(check_workspace(NOTES))
    bad(check_workspace(replace(NOTES, unavailable="it is away", hint="Mount it")), "problem", "away", "Mount it")
    bad(check_workspace(replace(NOTES, unreadable={"a.md": "Permission denied"})), "problem", "a.md", "chmod")
    bad(check_workspace(replace(NOTES, files=0)), "warning", "include")


def test_passed_over() -> None:
    well(check_passed_over(NOTES))
    many = {f"{number}.md": "not text" for number in range(100)}
    finding = check_passed_over(replace(NOTES, passed_over=many))
    bad(finding, "warning", "100 files", "0.md: not text")
    assert len(finding.details) == 10


def test_dates() -> None:
    well(check_dates(NOTES))
    bad(check_dates(replace(NOTES, dated_ahead={"a.md": date(2999, 1, 1)})), "warning", "a.md: 2999-01-01")
    bad(check_dates(replace(NOTES, written_ahead=["a.md"])), "warning", "a.md", "clock")


def test_languages() -> None:
    well(check_languages(NOTES, "all-minilm-l6-v2"))
    well(check_languages(replace(NOTES, share=0.9), "bge-m3"))
    well(check_languages(replace(NOTES, share=0.9), "/my/own.gguf"))
    bad(check_languages(replace(NOTES, share=0.9), "all-minilm-l6-v2"), "warning", "90%", "memoryd model use")


def test_file_system_of_notes() -> None:
    well(check_notes_file_system(NOTES))
    bad(check_notes_file_system(replace(NOTES, file_system="cifs")), "warning", "cifs", "reconcile_minutes")
    bad(check_notes_file_system(replace(NOTES, ignores_case=True)), "warning", "capital")


def test_daemon() -> None:
    well(check_daemon(PROCESS))
    silent = replace(PROCESS, status=None, silence="No memoryd daemon is listening", holder=None)
    bad(check_daemon(silent), "warning", "No memoryd daemon", "memoryd run")
    bad(check_daemon(replace(silent, holder=42)), "problem", "process 42", "XDG_RUNTIME_DIR")


def test_version() -> None:
    well(check_version(PROCESS))
    well(check_version(replace(PROCESS, status=None)))
    bad(check_version(replace(PROCESS, version="1.1")), "problem", "1.0", "1.1", "Restart")


def test_health() -> None:
    (finding,) = check_health(PROCESS)
    well(finding)
    assert check_health(replace(PROCESS, status=None)) == []
    reasons = [{"code": "store_full", "message": "the disk is full", "hint": "Free some"}]
    (finding,) = check_health(replace(PROCESS, status={**STATUS, "health": {"reasons": reasons}}))
    bad(finding, "problem", "the disk is full", "Free some")


def test_socket() -> None:
    well(check_socket(PROCESS))
    well(check_socket(replace(PROCESS, status=None, holder=None, socket_mode=None)))
    bad(check_socket(replace(PROCESS, socket_mode=None)), "problem", "gone")
    bad(check_socket(replace(PROCESS, socket_mode=stat.S_IFREG | 0o600)), "problem", "not a socket")
    bad(check_socket(replace(PROCESS, socket_mode=stat.S_IFSOCK | 0o666)), "problem", "chmod 600 /s")
    bad(check_socket(replace(PROCESS, status=None)), "warning", "nobody answers")


def test_other_daemons() -> None:
    well(check_others(PROCESS))
    bad(check_others(replace(PROCESS, others=(11, 12))), "warning", "kill 11 12")


def test_open_files() -> None:
    well(check_open_files(PROCESS, Config()))
    bad(check_open_files(replace(PROCESS, open_files_limit=256), Config()), "warning", "ulimit -n 4608", "LimitNOFILE")


@pytest.mark.parametrize(
    ("words", "is_one"),
    [
        (["/venv/bin/python", "/venv/bin/memoryd", "run"], True),
        (["memoryd", "run", "--workspace", "x"], True),
        (["python", "-m", "memoryd.daemon.cli", "run"], True),
        (["memoryd", "search", "run"], False),
        (["vim", "run", "memoryd"], False),
        ([""], False),
    ],
)
def test_a_daemon_is_told_by_its_command_line(words: list[str], is_one: bool) -> None:
    assert is_daemon("\0".join(words).encode() + b"\0") is is_one


def test_unit() -> None:
    well(check_unit(UNIT))
    well(check_unit(replace(UNIT, installed=None, program=None, program_runs=False)))
    well(check_unit(replace(UNIT, packaged=None)))  # a unit that this version does not bring
    well(check_unit(replace(UNIT, drop_ins=("mine.conf",))))
    bad(check_unit(replace(UNIT, installed="[Service]\nNice=9\n")), "warning", "Nice", "memoryd service install")
    bad(check_unit(replace(UNIT, program_runs=False)), "problem", "/bin/memoryd")


def test_units_are_compared_by_what_they_say() -> None:
    packaged = "# about\n[Service]\nNice=5\nExecStart=%h/.local/bin/memoryd run\nA=1 \\\n  2\n"
    installed = "[Service]\n\nExecStart=/venv/bin/memoryd run\nNice = 5\nA=1 2\n; mine\n"
    assert differing_keys(installed, packaged) == []
    assert differing_keys(installed + "Restart=no\n", packaged) == ["Restart"]
    assert differing_keys(installed.replace("Nice = 5", ""), packaged) == ["Nice"]


def test_what_a_machine_without_namespaces_leaves_out_is_no_difference() -> None:
    sandbox = "# Enforced by namespaces, which not everybody may have.\nPrivateUsers=yes\nProtectSystem=strict\n\n"
    packaged = f"[Service]\nNice=5\n\n{sandbox}[Install]\nWantedBy=default.target\n"
    without = packaged.replace(sandbox, "# Without them.\n\n")
    assert differing_keys(packaged, packaged) == []
    assert differing_keys(without, packaged) == []
    assert differing_keys(packaged.replace("ProtectSystem=strict\n", ""), packaged) == ["ProtectSystem"]


def test_the_program_of_a_unit() -> None:
    assert program_of('[Service]\nExecStart=-"%h/my venv/memoryd" run\n', "/home/me") == "/home/me/my venv/memoryd"
    assert program_of("[Socket]\nListenStream=%t/memoryd.sock\n", "/home/me") is None


def test_pauses_are_told_and_one_that_cannot_be_is_a_warning() -> None:
    busy, both = Surroundings(71.6, on_battery=False), Index(pause_on_battery=True, pause_on_pressure=60)
    assert check_pauses(Index(), busy).message == "embedding is never paused"
    told = check_pauses(both, busy)
    assert told.state == "ok"
    assert told.message == ("embedding is paused from 60 % CPU pressure on (now 72 %) and on battery (plugged in now)")
    untold = check_pauses(both, Surroundings(None, None))
    assert (untold.state, "psi=1" in (untold.fix or "")) == ("warning", True)
    assert check_pauses(Index(pause_on_battery=True), Surroundings(None, None)).state == "ok"
