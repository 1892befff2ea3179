"""A GGUF that writes text, run by llama.cpp on the CPU inside this process."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from memoryd.jobs.llama_library import (
    complained,
    default_threads,
    forget_complaints,
    free_model,
    load_llama,
    load_model,
)
from memoryd.jobs.llm.brake import Brake
from memoryd.jobs.llm.gguf import CHOOSE, ChatFile, verify_chat_gguf
from memoryd.jobs.llm.protocol import Message
from memoryd.store.errors import LanguageModelRefused, LanguageModelUnavailable, ModelCorrupt, PromptTooLong

CONTEXT_TOKENS: Final = 2048  # prompt and answer together; the memory for them is reserved at once
_BATCH_TOKENS: Final = 256
_FLASH_ATTENTION: Final = 1
_ABORTED: Final = 2  # what llama_decode answers then
_SEED: Final = 1
_LONGEST_PIECE: Final = 256  # bytes of one token


class Stopped(Exception):
    """The brake was pulled before the answer was whole."""


class LlamaGenerator:
    """One model in memory. Not thread safe: one caller at a time."""

    def __init__(self, path: Path, *, threads: int = 0) -> None:
        self._path = path
        self._model: Any = None
        self._context: Any = None
        facts = verify_chat_gguf(path)
        self._llama = load_llama()
        try:
            self._load(facts, threads or default_threads())
        except BaseException:
            self.close()
            raise

    def generate(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float,
        brake: Brake,
        grammar: str | None = None,
    ) -> str:
        """The model's answer, of this grammar (GBNF). Raises ``Stopped`` soon after the brake was pulled."""
        llama = self._llama
        prompt = self._tokenize(self._render(messages))
        if len(prompt) + max_tokens > self._room:
            raise PromptTooLong(
                f"the prompt has {len(prompt)} tokens; with {max_tokens} of answer at most {self._room} fit",
                hint="Ask for less at a time.",
            )
        forget_complaints()
        brake.attach(llama, self._context)
        llama.llama_memory_clear(llama.llama_get_memory(self._context), False)
        sampler = self._make_sampler(temperature, grammar)
        try:
            for start in range(0, len(prompt), _BATCH_TOKENS):
                self._read(prompt[start : start + _BATCH_TOKENS])
            return self._write(sampler, max_tokens)
        finally:
            llama.llama_sampler_free(sampler)

    def close(self) -> None:
        """Free the model's memory; calling it again is harmless."""
        model, context = self._model, self._context
        self._model = self._context = None
        free_model(model, context)

    def _load(self, facts: ChatFile, threads: int) -> None:
        llama = self._llama
        self._model = load_model(self._path, quantized=facts.quantized, hint=CHOOSE)
        self._vocabulary = llama.llama_model_get_vocab(self._model)
        self._begin = self._token_text(llama.llama_vocab_bos(self._vocabulary))
        end = self._token_text(llama.llama_vocab_eos(self._vocabulary))
        formatter = llama.llama_chat_format.Jinja2ChatFormatter
        try:
            self._format = formatter(facts.template, eos_token=end, bos_token=self._begin)
        except Exception as error:  # a template is a program; what a bad one raises is up to the template language
            raise ModelCorrupt(f"the chat template of {self._path} is damaged: {error}", hint=CHOOSE) from error

        self._room = min(CONTEXT_TOKENS, facts.context)
        parameters = llama.llama_context_default_params()
        parameters.n_ctx = self._room
        parameters.n_batch = parameters.n_ubatch = _BATCH_TOKENS
        parameters.n_seq_max = 1
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.flash_attn_type = _FLASH_ATTENTION
        parameters.no_perf = True
        self._context = llama.llama_init_from_model(self._model, parameters)
        if self._context is None:
            raise ModelCorrupt(f"llama.cpp cannot run {self._path}{complained()}", hint=CHOOSE)

    def _render(self, messages: Sequence[Message]) -> str:
        """The conversation as the model was trained to see it; a system message as the user's where it knows none."""
        texts = [message.content for message in messages]
        for attempt in (
            [{"role": message.role, "content": message.content} for message in messages],
            [{"role": "user", "content": "\n\n".join(texts)}],
        ):
            try:
                # Models that can think aloud are told not to: their thoughts would use up the answer's tokens.
                prompt: str = self._format(messages=attempt, enable_thinking=False).prompt
            except Exception as error:  # noqa: BLE001  as above
                refusal = error
            else:
                return prompt
        raise LanguageModelRefused(f"the chat template of {self._path} refuses: {refusal}", hint=CHOOSE) from refusal

    def _tokenize(self, prompt: str) -> list[int]:
        data = prompt.encode("utf-8", "replace")
        room = len(data) + 8
        buffer = (ctypes.c_int32 * room)()
        add_begin = not (self._begin and prompt.startswith(self._begin))
        # The last argument: the marks that the template wrote are marks, not text.
        count = self._llama.llama_tokenize(self._vocabulary, data, len(data), buffer, room, add_begin, True)
        return list(buffer[:count])

    def _make_sampler(self, temperature: float, grammar: str | None) -> Any:
        llama = self._llama
        chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
        if grammar is not None:
            rules = llama.llama_sampler_init_grammar(self._vocabulary, grammar.encode(), b"root")
            if not rules:
                llama.llama_sampler_free(chain)
                raise LanguageModelRefused(f"llama.cpp does not understand the grammar{complained()}")
            llama.llama_sampler_chain_add(chain, rules)
        if temperature > 0:
            llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_temp(temperature))
            llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_dist(_SEED))
        else:
            llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_greedy())
        return chain

    def _write(self, sampler: Any, max_tokens: int) -> str:
        llama = self._llama
        answer = b""
        piece = ctypes.create_string_buffer(_LONGEST_PIECE)
        for written in range(1, max_tokens + 1):
            token = llama.llama_sampler_sample(sampler, self._context, -1)
            if llama.llama_vocab_is_eog(self._vocabulary, token):
                break
            length = llama.llama_token_to_piece(self._vocabulary, token, piece, _LONGEST_PIECE, 0, False)
            answer += piece.raw[: max(0, length)]
            if written < max_tokens:
                self._read([token])
        return answer.decode("utf-8", "ignore")  # the last character may be cut

    def _read(self, tokens: Sequence[int]) -> None:
        array = (ctypes.c_int32 * len(tokens))(*tokens)
        status = self._llama.llama_decode(self._context, self._llama.llama_batch_get_one(array, len(tokens)))
        if status == _ABORTED:
            raise Stopped
        if status != 0:
            raise LanguageModelUnavailable(
                f"llama.cpp answered {status}{complained()}", hint="Free some memory, or restart memoryd."
            )

    def _token_text(self, token: int) -> str:
        if token < 0:
            return ""
        text: bytes = self._llama.llama_vocab_get_text(self._vocabulary, token)
        return text.decode("utf-8", "replace")
