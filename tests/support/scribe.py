"""What a diligent language model would answer to ingest's question: each sentence of the text as a fact."""

from __future__ import annotations

import json
import re
from typing import Any


def asked_text(body: dict[str, Any]) -> str:
    """The piece that a request is about, as it stands between the two lines of the fence."""
    (text,) = re.findall(r"^(TEXT-[0-9a-f]{16}) begin\n(.*)\n\1 end$", body["messages"][-1]["content"], re.S | re.M)
    return str(text[1])


def sentences(text: str) -> list[str]:
    lines = [line for line in text.split("\n") if not line.startswith(("#", "---", "```"))]
    found = (sentence.strip(" -") for line in lines for sentence in re.findall(r"[^.!?]+[.!?]", line))
    return [sentence for sentence in found if len(sentence) > 12]


def write_down(body: dict[str, Any]) -> str:
    return "\n".join(json.dumps({"fact": each, "category": "procedure"}) for each in sentences(asked_text(body)))
