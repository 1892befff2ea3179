"""A remote service as it is configured: which one, how it is asked, and what its vectors are comparable with."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from memoryd.jobs.embedders.fingerprint import fingerprint
from memoryd.jobs.embedders.providers.provider import Prompts, Provider


@dataclass(frozen=True, slots=True)
class Service:
    provider: Provider
    base_url: str
    model: str
    dimension: int = 0  # 0: the model's own
    query_prefix: str = ""  # instead of the one that the model is known to want
    document_prefix: str = ""
    text_version: str = ""
    timeout_s: float = 30.0

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).netloc

    @property
    def prompts(self) -> Prompts:
        known = self.provider.prompts(self.model)
        return Prompts(self.query_prefix or known.query, self.document_prefix or known.document)

    def fingerprint(self, dimension: int) -> str:
        provider, prompts = self.provider, self.prompts
        return fingerprint(
            "remote",
            provider.name,
            self.host if provider.has_own_address else "",
            self.model,
            str(dimension),
            prompts.query,
            prompts.document,
            provider.manner(self.model),
            self.text_version,
        )
