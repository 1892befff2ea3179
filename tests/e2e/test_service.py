"""memoryd as a service of a real systemd user manager, sandboxed, with the real journal: what systemd sees and does."""

from __future__ import annotations

import json
import os
import select
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import PROGRAM
from tests.support.user_manager import HOME, UID, UserManager, run_user_manager, why_not
from tests.support.waiting import eventually

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"no user manager: {why_not()}")

CONFIG = '[[workspace]]\npath = "~/notes"\n'


class Service:
    """The user, their notes, and the service that they installed."""

    def __init__(self, manager: UserManager) -> None:
        self.manager = manager
        self.home = manager.outside

    def write(self, path: str, text: str) -> None:
        file = self.home / path
        missing = [folder for folder in (file.parent, *file.parent.parents) if not folder.exists()]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        for each in (file, *missing):
            os.chown(each, UID, UID)

    def memoryd(self, *words: str) -> Any:
        return self.manager.run(PROGRAM, *words)

    def json(self, *words: str) -> Any:
        done = self.memoryd(*words, "--json")
        answer = json.loads(done.stdout)
        assert "error" not in answer, f"{done.stdout}{done.stderr}"
        return answer

    def systemctl(self, *words: str) -> Any:
        return self.manager.run("systemctl", "--user", *words)

    def property(self, name: str) -> str:
        return str(self.systemctl("show", "memoryd.service", f"--property={name}", "--value").stdout.strip())

    def pid(self) -> str:
        """As the user's namespace counts."""
        return self.property("MainPID")

    def settle(self) -> None:
        assert self.json("index")["complete"], self.journal()
        eventually(lambda: self.json("status")["health"]["state"] == "ok", what=self.journal())

    def journal(self, *matches: str) -> list[dict[str, Any]]:
        done = self.manager.run("journalctl", "--output=json", "--no-pager", *matches, root=True)
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, default_model: Path, models_dir: Path) -> Iterator[Service]:
    needed = [Path(__file__).resolve().parents[2]]
    with run_user_manager(tmp_path_factory.mktemp("service"), needed) as manager:
        service = Service(manager)
        service.write("notes/memory/pets.md", "# Pets\n\nThe puppy sleeps in the kitchen.\n")
        service.write(".config/memoryd/config.toml", CONFIG)
        service.write(".cache/memoryd/models/.keep", "")
        shutil.copytree(default_model.parent, service.home / ".cache/memoryd/models" / default_model.parent.name)
        for each in (service.home / ".cache").rglob("*"):
            os.chown(each, UID, UID)
        yield service


@pytest.fixture
def installed(service: Service) -> Service:
    """Installed once, and again before each test, which changes nothing unless a test did."""
    done = service.memoryd("service", "install")
    assert done.returncode == 0, f"{done.stderr}\n{service.journal('-n', '40')}"
    service.settle()
    return service


def test_service_serves_sandboxed_and_says_what_it_did(installed: Service) -> None:
    assert installed.json("search", "where does the little dog rest")["results"][0]["path"] == "memory/pets.md"
    assert installed.json("status")["embedder"]["state"] == "ready"
    status = installed.json("service", "status")
    assert (status["active"], status["enabled"], status["says"]) == (True, True, "serving 1 workspace")
    assert status["restarts"] == 0
    assert set(status["units"].values()) == {"current"}
    again = installed.memoryd("service", "install")
    assert again.returncode == 0
    told = [line for line in again.stderr.splitlines() if not line.startswith(("note: ", "Ask it: "))]
    assert [line.split()[0] for line in told] == ["unchanged"] * 3, again.stderr

    facts = installed.manager.run("cat", f"/proc/{installed.pid()}/status").stdout
    assert "Seccomp:\t2" in facts
    assert "NoNewPrivs:\t1" in facts
    assert "CapBnd:\t0000000000000000" in facts
    if os.cpu_count() != 1:  # the keyword legs were sent to another core than the query's embedding, which is allowed
        cores = f"grep -h Cpus_allowed_list /proc/{installed.pid()}/task/*/status"
        assert len(set(installed.manager.run("sh", "-c", cores).stdout.splitlines())) > 1
    inside = ["nsenter", f"--target={installed.pid()}", "--mount", "--user", "--preserve-credentials", "sh", "-c"]
    for place, written in (("notes/memory", False), (".ssh", False), (".local/share/memoryd", True)):
        installed.write(f"{place}/there", "")
        done = installed.manager.run(*inside, f"echo x > {HOME}/{place}/there")
        assert (done.returncode == 0) is written, done.stderr
        assert ("Read-only file system" in done.stderr) is not written


def test_journal_has_an_entry_with_fields_for_each_query_and_job(installed: Service) -> None:
    installed.memoryd("search", "zymurgy")
    (query,) = eventually(lambda: installed.journal("MEMORYD_EVENT=query_done", "-n", "1"))
    assert query["PRIORITY"] == "6"
    assert query["SYSLOG_IDENTIFIER"] == "memoryd"
    assert query["_UID"] == str(UID)
    assert float(query["MEMORYD_TOOK_MS"]) > 0
    assert query["MEMORYD_QUERY"] == "<7 characters>"
    assert installed.journal("MEMORYD_EVENT=job_done", "MEMORYD_KIND=index", "MEMORYD_PATH=memory/pets.md")
    everything = json.dumps(installed.journal())
    assert "zymurgy" not in everything
    assert "sleeps in the kitchen" not in everything


def test_reload_adds_a_workspace_and_a_broken_configuration_keeps_the_old(installed: Service) -> None:
    pid = installed.pid()
    installed.write("work/memory/plan.md", "A lighthouse in the fog.\n")
    installed.write(".config/memoryd/config.toml", CONFIG + '[[workspace]]\npath = "~/work"\n')
    done = installed.systemctl("reload", "memoryd")
    assert done.returncode == 0, done.stderr
    eventually(
        lambda: [hit["path"] for hit in installed.json("search", "lighthouse")["results"]][:1] == ["memory/plan.md"]
    )
    assert installed.property("StatusText") == "serving 2 workspaces"

    installed.write(".config/memoryd/config.toml", CONFIG + "[serch]\nlimit = 3\n")
    refused = installed.systemctl("reload", "memoryd")
    assert refused.returncode != 0
    assert "the former one is in force" in installed.property("StatusText")
    status = installed.memoryd("status")
    assert status.returncode == 4
    assert "serch" in status.stdout
    assert [workspace["name"] for workspace in installed.json("status")["workspaces"]] == ["notes", "work"]

    installed.write(".config/memoryd/config.toml", CONFIG)
    assert installed.systemctl("reload", "memoryd").returncode == 0
    assert installed.json("status")["health"]["reasons"] == []
    assert installed.property("StatusText") == "serving 1 workspace"
    assert installed.property("ActiveState") == "active"
    assert installed.pid() == pid


def test_question_to_a_stopped_or_killed_service_is_answered(installed: Service) -> None:
    assert installed.systemctl("stop", "memoryd.service").returncode == 0
    assert installed.property("Result") == "success"
    assert installed.json("search", "puppy")["results"]  # the socket started it
    before = installed.pid()
    installed.manager.run("kill", "-KILL", before)
    assert installed.json("search", "puppy")["results"]  # asked while nobody was there
    assert installed.pid() not in ("0", before)
    assert installed.property("NRestarts") != "0"


def test_stop_stops_the_socket_too_and_start_brings_both_back(installed: Service) -> None:
    assert installed.memoryd("service", "stop").returncode == 0
    assert installed.memoryd("status").returncode == 3
    assert installed.memoryd("service", "status").returncode == 3
    assert installed.memoryd("service", "start").returncode == 0
    assert installed.json("status")["workspaces"]
    before = installed.pid()
    assert installed.memoryd("service", "restart").returncode == 0
    assert installed.pid() != before


def test_logs_are_the_users_own_journal(installed: Service) -> None:
    installed.memoryd("search", "puppy")
    eventually(lambda: "query_done" in installed.memoryd("service", "logs").stdout, what="the query is in the log")
    assert len(installed.memoryd("service", "logs", "--lines", "2").stdout.strip().splitlines()) == 2
    entries = [json.loads(line) for line in installed.memoryd("service", "logs", "--json").stdout.splitlines()]
    assert {"serving", "job_done", "query_done"} <= {entry.get("MEMORYD_EVENT") for entry in entries}
    about = ({entry.get("_SYSTEMD_USER_UNIT"), entry.get("USER_UNIT")} for entry in entries)  # systemd's own words too
    assert all("memoryd.service" in units for units in about)

    with installed.manager.start(PROGRAM, "service", "logs", "--follow", "--lines", "0") as following:
        try:
            assert following.stdout
            output = following.stdout.fileno()

            def told() -> bool:
                installed.memoryd("search", "puppy")
                return bool(select.select([output], [], [], 0)[0]) and b"query_done" in os.read(output, 65536)

            eventually(told, what="the query is in the log that is followed")
        finally:
            installed.manager.run("pkill", "-U", str(UID), "journalctl")


def test_crash_of_a_native_library_leaves_a_report_that_the_next_start_tells_of(installed: Service) -> None:
    """StateDirectory= is ~/.local/state/memoryd, before systemd 254 ~/.config/memoryd: private, and writable inside."""
    folder = next(each for each in (".local/state/memoryd", ".config/memoryd") if (installed.home / each).exists())
    assert (installed.home / folder).stat().st_mode & 0o777 == 0o700
    assert installed.property("StateDirectory") == "memoryd"
    before = installed.pid()
    installed.manager.run("kill", "-SEGV", before)
    eventually(lambda: installed.pid() not in ("0", before), what="the service was restarted")
    (told,) = eventually(lambda: installed.journal("MEMORYD_EVENT=crashed_last_time"))
    assert "Segmentation fault" in told["MEMORYD_REASON"]
    report = (installed.home / folder / "crash.last.log").read_text()
    assert "Current thread" in report or "Thread 0x" in report
    assert "puppy" not in report
    assert installed.json("search", "puppy")["results"]


def test_watchdog_ends_a_daemon_that_hangs(installed: Service) -> None:
    installed.write(".config/systemd/user/memoryd.service.d/short.conf", "[Service]\nWatchdogSec=4\n")
    try:
        installed.systemctl("daemon-reload")
        assert installed.memoryd("service", "restart").returncode == 0
        installed.settle()
        before = installed.pid()
        installed.manager.run("kill", "-STOP", before)
        eventually(lambda: installed.pid() not in ("0", before), what="the service was restarted")
        assert installed.json("search", "puppy")["results"]
    finally:
        shutil.rmtree(installed.home / ".config/systemd/user/memoryd.service.d")
        installed.systemctl("daemon-reload")


def test_credential_reaches_the_language_model_and_nothing_else(installed: Service) -> None:
    installed.write("key", "sk-of-the-service\n")
    installed.write(".config/systemd/user/memoryd.service.d/key.conf", "[Service]\nLoadCredential=llm-key:%h/key\n")
    try:
        installed.systemctl("daemon-reload")
        assert installed.memoryd("service", "restart").returncode == 0, installed.journal("-n", "20")
        environ = installed.manager.run("cat", f"/proc/{installed.pid()}/environ", root=True).stdout
        folder = next(each for each in environ.split("\0") if each.startswith("CREDENTIALS_DIRECTORY="))
        code = (
            "import os; from memoryd.daemon.config import Llm; from memoryd.daemon.language_model import _read_key; "
            "print(_read_key(Llm(api_key_credential='llm-key'), os.environ)())"
        )
        read = installed.manager.run("env", folder, sys.executable, "-c", code)
        assert read.stdout.strip() == "sk-of-the-service", read.stderr
        assert "sk-of-the-service" not in environ
    finally:
        shutil.rmtree(installed.home / ".config/systemd/user/memoryd.service.d")
        installed.systemctl("daemon-reload")


def test_configuration_with_problems_is_not_tried_again_and_again(installed: Service) -> None:
    installed.write(".config/memoryd/config.toml", "[serch]\n")
    assert installed.systemctl("restart", "memoryd.service").returncode != 0
    assert installed.property("ActiveState") == "failed"
    assert installed.property("ExecMainStatus") == "2"
    installed.write(".config/memoryd/config.toml", CONFIG)
    assert installed.systemctl("reset-failed", "memoryd.service", "memoryd.socket").returncode == 0
    assert installed.memoryd("service", "start").returncode == 0


def test_uninstall_leaves_nothing_behind_but_the_index(installed: Service) -> None:
    done = installed.memoryd("service", "uninstall")
    assert done.returncode == 0
    assert not list((installed.home / ".config/systemd/user").glob("memoryd*"))
    assert installed.property("LoadState") == "not-found"
    assert (installed.home / ".local/share/memoryd/ledger.db").exists()
    assert "no memoryd unit" in installed.memoryd("service", "uninstall").stderr
    assert installed.memoryd("service", "start").returncode == 1
