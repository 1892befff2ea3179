"""Keys of well-known shapes never get as far as a store; words, hashes and paths stay what they are."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.jobs.sessions.secrets import mask_secrets

# Put together here, so that no scanner takes this file for a leak.
A = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9f"
SECRETS = {
    "Anthropic": "sk-ant-" + "api03-" + A,
    "OpenAI": "sk-" + "proj-" + A,
    "OpenAI, old": "sk-" + A,
    "AWS": "AKIA" + "IOSFODNN7EXAMPLE",
    "GitHub": "ghp_" + A[:36],
    "GitHub, fine": "github_pat_" + A + A,
    "GitLab": "glpat-" + A[:20],
    "Slack": "xoxb-" + "123456789012-" + A,
    "Slack webhook": "https://hooks.slack.com/services/" + "T00000000/B00000000/" + A[:24],
    "Google": "AIza" + A[:35],
    "Google OAuth": "ya29." + A,
    "Stripe": "sk_live_" + A,
    "npm": "npm_" + A[:36],
    "Hugging Face": "hf_" + A[:34],
    "SendGrid": "SG." + A[:22] + "." + A,
    "Telegram": "123456789:" + A[:35],
    "JWT": "eyJ" + "hbGciOiJIUzI1NiJ9" + "." + "eyJ" + "zdWIiOiIxMjM0In0" + "." + A,
    "PEM": "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEpAIBAAKC\n" + A + "\n-----END RSA PRIVATE KEY-----",
    "PEM, cut off": "-----BEGIN " + "PRIVATE KEY-----\nMIIEpAIBAAKC\n" + A,
}
NAMED = {  # the text, and what of it must not be left
    "header": ("Authorization: Bearer " + "correct-horse-battery", "correct-horse-battery"),
    "curl": ("curl -H 'Authorization: Basic " + "dXNlcjpwYXNz' http://x", "dXNlcjpwYXNz"),
    "URL": ("postgres://ana:" + "hunter22@db.local/boat", "hunter22"),
    "JSON": ('{"db_password": "' + 'hunter22"}', "hunter22"),
    "camel case": ("apiKey: '" + "hunter22hunter'", "hunter22hunter"),
    "environment": ("export BOAT_API_KEY=" + "hunter22hunter", "hunter22hunter"),
}
HARMLESS = (
    "The secret of the boat: reef early.",
    "Ask for the token at the harbour office.",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "/home/ana/boat/src/hull/frames/keel.py",
    "https://example.org/a/b?c=d#e",
    "see https://example.org:8080/path@v2",
    "123e4567-e89b-12d3-a456-426614174000",
    "const token = getToken();",
    "The password is asked for twice.",
    "sk-learn is a library",
)


@pytest.mark.parametrize("name", SECRETS)
def test_well_known_key_is_masked_wherever_it_stands(name: str) -> None:
    secret = SECRETS[name]
    for text in (secret, f"use {secret}, please", f'"{secret}"', f"KEY={secret}\n", f"({secret})"):
        masked = mask_secrets(text)
        assert A[:16] not in masked, masked
        assert "masked]" in masked
    assert mask_secrets(f"before {secret} ").startswith("before ")


@pytest.mark.parametrize("name", NAMED)
def test_what_is_called_a_secret_is_masked_and_its_name_stays(name: str) -> None:
    text, secret = NAMED[name]
    masked = mask_secrets(text)
    assert secret not in masked
    assert masked.startswith(text[: text.index(secret)])


@pytest.mark.parametrize("text", HARMLESS)
def test_words_stay_as_they_are(text: str) -> None:
    assert mask_secrets(text) == text


@given(st.text())
def test_masking_twice_changes_nothing_more(text: str) -> None:
    once = mask_secrets(text)
    assert mask_secrets(once) == once


@pytest.mark.parametrize(
    "text",
    ["a" * 100_000, "1" * 100_000, "a_" * 50_000, "A_" * 50_000, "-----BEGIN PRIVATE KEY-----" * 4000, "x://" * 25_000,
     "bearer " * 15_000, "eyJaaaaaaaaaa." * 7000, "password: " * 10_000],
)  # fmt: skip
def test_no_text_takes_much_longer_than_its_length(text: str) -> None:
    """Ten times the text takes about ten times as long, not a hundred times."""

    def took(part: str) -> float:
        began = time.process_time()
        mask_secrets(part)
        return time.process_time() - began

    tenth = min(took(text[: len(text) // 10]) for _ in range(3))
    assert took(text) < 40 * max(tenth, 0.0005)
