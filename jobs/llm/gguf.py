"""Whether a GGUF holds a model that can converse, read before llama.cpp gets to see it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.jobs.models.gguf_file import is_quantized, read_metadata
from memoryd.store.errors import ModelCorrupt

CHOOSE: Final = "Set `llm.model` to the .gguf of an instruction-tuned model."


@dataclass(frozen=True, slots=True)
class ChatFile:
    """The facts of a conversing model's file."""

    context: int  # tokens the model was trained for
    template: str  # how a conversation is written down for it, in Jinja
    quantized: bool


def verify_chat_gguf(path: Path) -> ChatFile:
    """Read the file's header; raise ``ModelMissing`` or ``ModelCorrupt`` unless it is a whole model that converses."""
    metadata = read_metadata(path, if_missing=CHOOSE, if_damaged=CHOOSE)
    architecture = str(metadata.get("general.architecture") or "unknown")
    context = metadata.get(f"{architecture}.context_length")
    template = metadata.get("tokenizer.chat_template")
    if not isinstance(template, str) or not template:
        raise ModelCorrupt(f"{path} holds a {architecture} model that does not converse", hint=CHOOSE)
    if not isinstance(context, int) or context < 1:
        raise ModelCorrupt(f"{path} does not state its context", hint=CHOOSE)
    return ChatFile(context, template, is_quantized(metadata))
