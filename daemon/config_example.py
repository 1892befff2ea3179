"""``python -m memoryd.daemon.config_example > config.example.toml`` writes the example anew."""

from __future__ import annotations

import sys

from memoryd.daemon.config_show import render_example

if __name__ == "__main__":
    sys.stdout.write(render_example())
