"""Draws docs/terminal.svg: a real daemon on examples/workspace, asked in a real (pseudo) terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from memoryd.daemon.client import Client
from memoryd.daemon.config import Config
from memoryd.daemon.paths import find_paths

COLUMNS = 104
MEMORYD = Path(sys.executable).with_name("memoryd")
COMMANDS = (
    ["search", "how do we ship a change safely", "-n", "1"],
    ["search", "胶圈", "-n", "1"],
    ["status"],
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        environ = {
            **os.environ,
            "XDG_DATA_HOME": folder,
            "XDG_RUNTIME_DIR": folder,
            "XDG_CONFIG_HOME": folder,
            "MEMORYD_PATHS__CACHE": str(find_paths(Config(), os.environ).cache_dir),
            "MEMORYD_PATHS__SOCKET": f"{folder}/memoryd.sock",
            "TERM": "xterm-256color",
            "COLUMNS": str(COLUMNS),
            "LINES": "50",
        }
        daemon = subprocess.Popen(
            [MEMORYD, "run", "--workspace", "examples/workspace"], env=environ, stderr=subprocess.DEVNULL
        )
        try:
            wait_until_current(Path(folder) / "memoryd.sock")
            console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
            for command in COMMANDS:
                words = " ".join(f'"{word}"' if " " in word else word for word in command)
                console.print(Text.assemble(("$ ", "bold green"), f"memoryd {words}"))
                console.print(
                    Text.from_ansi(
                        in_terminal([str(MEMORYD), *command], environ).replace(folder, "$XDG_RUNTIME_DIR/memoryd")
                    )
                )
            console.save_svg("docs/terminal.svg", title="memoryd")
        finally:
            daemon.terminate()
            daemon.wait()


def wait_until_current(socket: Path) -> None:
    while not socket.exists():
        pass
    with Client(socket, timeout=None) as client:
        client.call("index")


def in_terminal(command: list[str], environ: dict[str, str]) -> str:
    """What a command prints when it believes that somebody looks."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(command, env=environ, stdout=terminal, stderr=terminal, stdin=terminal)
    os.close(terminal)
    printed = b""
    while True:
        try:
            data = os.read(controller, 65536)
        except OSError:  # the terminal is closed: the command has ended
            break
        if not data:
            break
        printed += data
    process.wait()
    os.close(controller)
    return printed.decode().replace("\r\n", "\n")


if __name__ == "__main__":
    main()
