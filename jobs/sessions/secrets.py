"""Keys, tokens and passwords of well-known shapes, masked before anything is stored.

A transcript is full of them: people paste them, tools print them. What is masked here is what can be told by its
shape alone; a password in plain words cannot.
"""

from __future__ import annotations

import re

_SHAPES: tuple[tuple[str, str], ...] = (
    # With a block around it, whether it ends or was cut off.
    (
        "private key",
        r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?!-----END )[\s\S]){0,20000}(?:-----END [A-Z0-9 ]{1,60}-----)?",
    ),
    ("Anthropic key", r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
    ("OpenRouter key", r"\bsk-or-[A-Za-z0-9_-]{16,}"),
    ("OpenAI key", r"\bsk-(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9_-]{20,}"),
    ("AWS key", r"\b(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z2-7]{16}\b"),
    ("GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})"),
    ("GitLab token", r"\bgl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent|oas)-[A-Za-z0-9_-]{20,}"),
    ("Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-\d-[A-Za-z0-9-]{10,}"),
    ("Slack webhook", r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}"),
    ("Discord webhook", r"https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,}"),
    ("Telegram token", r"\b\d{8,10}:[A-Za-z0-9_-]{35}\b"),
    ("Google key", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("Google token", r"\bya29\.[A-Za-z0-9_-]{20,}|\bGOCSPX-[A-Za-z0-9_-]{20,}"),
    ("Stripe key", r"\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9]{24,}"),
    ("npm token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("PyPI token", r"\bpypi-[A-Za-z0-9_-]{50,}"),
    ("Hugging Face token", r"\bhf_[A-Za-z0-9]{30,}"),
    ("xAI key", r"\bxai-[A-Za-z0-9]{40,}"),
    ("Groq key", r"\bgsk_[A-Za-z0-9]{40,}"),
    ("SendGrid key", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("Twilio key", r"\bSK[0-9a-f]{32}\b"),
    ("DigitalOcean token", r"\bdo[opr]_v1_[0-9a-f]{64}"),
    ("age key", r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    ("token", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),  # a JWT
)
# The rest of what matches "kept" stays: it says what was masked.
_NAMED: tuple[tuple[str, str], ...] = (
    (
        "credentials",
        r"(?P<kept>\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token)\s{1,3})[^\s\"'<>\[]{6,}",
    ),
    ("credentials", r"(?P<kept>\bbearer\s{1,3})[A-Za-z0-9._~+/=-]{20,}"),
    ("password", r"(?P<kept>\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"'<>]{0,100}:)[^\s/@\"'<>\[]{1,200}(?=@)"),
    (
        "secret",
        r"(?P<kept>(?<![A-Za-z0-9])(?:[A-Za-z0-9]{1,40}[_-]){0,4}[A-Za-z0-9]{0,40}"
        r"(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key"
        r"|access[_-]?token|auth[_-]?token|refresh[_-]?token|client[_-]?secret|token)(?:[_-](?:id|key|value))?"
        r"[\"']?\s{0,3}(?:=|:)\s{0,3}[\"'])[^\s\"']{6,400}(?=[\"'])",
    ),
    (
        "secret",
        r"(?P<kept>(?<![A-Za-z0-9_])(?:[A-Z0-9]{1,40}_){0,5}(?:PASSWORD|PASSWD|SECRET|TOKEN|KEY|CREDENTIALS)=)"
        r"[^\s\"'$<>\[(]{6,400}",
    ),
)
_UNNAMED_PATTERNS = [(name, re.compile(shape)) for name, shape in _SHAPES]
_NAMED_PATTERNS = [
    (name, re.compile(shape, 0 if "PASSWD|SECRET" in shape else re.IGNORECASE)) for name, shape in _NAMED
]


def mask_secrets(text: str) -> str:
    """The text with every secret replaced by what it was."""
    for name, pattern in _UNNAMED_PATTERNS:
        text = pattern.sub(f"[{name} masked]", text)
    for name, pattern in _NAMED_PATTERNS:
        text = pattern.sub(rf"\g<kept>[{name} masked]", text)
    return text
