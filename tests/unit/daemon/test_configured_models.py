"""From [embedder] to the embedder: which provider, with which key, and that nothing is sent by surprise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.daemon.config import Embedder as Settings
from memoryd.daemon.config_file import load_config
from memoryd.daemon.config_show import render_config, to_json
from memoryd.daemon.configured_models import ConfiguredModels, changed_settings, choose_provider, made_with
from memoryd.daemon.embedding_keys import KEYED
from memoryd.jobs.embedders.sleeper import Sleeper
from memoryd.store.errors import ConfigInvalid, EmbedderRefused, ModelMissing, ProviderUnavailable
from tests.support.embedding_apis import APIS
from tests.support.embedding_server import KEY, EmbeddingServer, run_embedding_server
from tests.support.fake_embedder import FakeEmbedder

HOSTS = {
    "openai": "api.openai.com",
    "gemini": "generativelanguage.googleapis.com",
    "voyage": "api.voyageai.com",
    "mistral": "api.mistral.ai",
}
NOWHERE = Settings(auto_install=False)  # with an empty folder of models: the local one cannot be had


def quiet(_stage: str, _done: int, _total: int | None) -> None:
    pass


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingServer]:
    """The only way out: it lets nobody through, and notes who wanted to go where."""
    with run_embedding_server(APIS["openai"]) as server:
        for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{server.port}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(name, "")
        yield server


# -- auto -------------------------------------------------------------------------------------------------


def test_auto_takes_the_local_model_whatever_keys_there_are(default_model: Path, proxy: EmbeddingServer) -> None:
    environ = {"OPENAI_API_KEY": KEY, "MEMORYD_OPENAI_API_KEY": KEY}
    models = ConfiguredModels(NOWHERE, default_model.parents[1], environ)
    with closing(models.load(quiet)) as embedder:
        assert isinstance(embedder, Sleeper)
    assert (models.choice.provider, models.choice.sends_to) == ("local", None)
    assert "local model comes first" in models.choice.why
    assert proxy.paths == []


def test_auto_sends_nothing_for_a_key_that_is_somebody_else_s(tmp_path: Path, proxy: EmbeddingServer) -> None:
    usual = ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VOYAGE_API_KEY", "MISTRAL_API_KEY")
    models = ConfiguredModels(NOWHERE, tmp_path, dict.fromkeys(usual, KEY))
    with pytest.raises(ModelMissing):
        models.load(quiet)
    assert models.choice.provider == "local"
    assert proxy.paths == []


@pytest.mark.parametrize("provider", KEYED)
@pytest.mark.parametrize("place", ["variable", "file", "credential"])
def test_auto_takes_the_provider_that_memoryd_was_given_a_key_for_and_says_why(
    tmp_path: Path, proxy: EmbeddingServer, provider: str, place: str
) -> None:
    (tmp_path / f"{provider}_api_key").write_text(f"{KEY}\n")
    variable = f"MEMORYD_{provider.upper()}_API_KEY"
    environ = {
        "variable": {variable: KEY},
        "file": {f"{variable}_FILE": str(tmp_path / f"{provider}_api_key")},
        "credential": {"CREDENTIALS_DIRECTORY": str(tmp_path)},
    }[place]
    models = ConfiguredModels(NOWHERE, tmp_path / "models", environ)
    with pytest.raises(ProviderUnavailable, match=HOSTS[provider]):  # the proxy lets nobody through
        models.load(quiet)
    assert proxy.paths == [f"{HOSTS[provider]}:443"]
    assert (models.choice.provider, models.choice.sends_to) == (provider, HOSTS[provider])
    assert "is not installed" in models.choice.why
    assert f"given a key for {provider}" in models.choice.why
    assert KEY not in models.choice.why + models.recipe
    assert json.loads(models.recipe)["provider"] == provider, "the way back knows what it was"


def test_auto_takes_the_first_of_several(tmp_path: Path, proxy: EmbeddingServer) -> None:
    environ = {"MEMORYD_MISTRAL_API_KEY": KEY, "MEMORYD_GEMINI_API_KEY": KEY, "MEMORYD_OPENAI_API_KEY": " "}
    models = ConfiguredModels(NOWHERE, tmp_path, environ)
    with pytest.raises(ProviderUnavailable):
        models.load(quiet)
    assert models.choice.provider == "gemini"


def test_local_never_falls_back(tmp_path: Path, proxy: EmbeddingServer) -> None:
    models = ConfiguredModels(replace(NOWHERE, provider="local"), tmp_path, {"MEMORYD_OPENAI_API_KEY": KEY})
    with pytest.raises(ModelMissing):
        models.load(quiet)
    assert proxy.paths == []


# -- a provider by its name -------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", APIS)
def test_named_provider_is_asked_with_its_key(tmp_path: Path, provider: str) -> None:
    with run_embedding_server(APIS[provider], FakeEmbedder()) as server:
        file = tmp_path / "key"
        file.write_text(KEY)
        model = "some-model" if provider == "openai-compatible" else ""
        settings = Settings(provider=provider, base_url=server.url, api_key_file=str(file), model=model)
        models = ConfiguredModels(settings, tmp_path / "models", {})
        with closing(models.load(quiet)) as embedder:
            assert embedder.identity.model.startswith(f"{provider}:")
            assert embedder.identity.dimension == 128
        assert (models.choice.provider, models.choice.why, models.choice.sends_to) == (provider, "as configured", None)
        with closing(models.former(models.recipe).load(quiet)) as former:
            assert former.identity == embedder.identity


def test_usual_variable_counts_where_the_provider_is_named(tmp_path: Path) -> None:
    with run_embedding_server(APIS["openai"], FakeEmbedder()) as server:
        settings = Settings(provider="openai", base_url=server.url)
        with closing(ConfiguredModels(settings, tmp_path, {"OPENAI_API_KEY": KEY}).load(quiet)):
            assert server.headers[0]["authorization"] == f"Bearer {KEY}"
        with pytest.raises(EmbedderRefused, match="no key for openai") as caught:
            ConfiguredModels(settings, tmp_path, {}).load(quiet)
        assert "OPENAI_API_KEY" in (caught.value.hint or "")
        with pytest.raises(EmbedderRefused, match="holds no key"):
            ConfiguredModels(replace(settings, api_key_env="OTHER"), tmp_path, {"OPENAI_API_KEY": KEY}).load(quiet)


def test_local_model_s_name_means_the_provider_s_default(tmp_path: Path) -> None:
    with run_embedding_server(APIS["voyage"], FakeEmbedder()) as server:
        settings = Settings(provider="voyage", base_url=server.url)
        with closing(ConfiguredModels(settings, tmp_path, {"VOYAGE_API_KEY": KEY}).load(quiet)) as embedder:
            assert embedder.identity.model == "voyage:voyage-3.5"


def test_none_is_off_and_says_so(tmp_path: Path) -> None:
    models = ConfiguredModels(Settings(provider="none"), tmp_path, {})
    assert "as configured" in (models.off or "")
    assert models.choice.provider == "none"
    assert ConfiguredModels(Settings(), tmp_path, {}).off is None


def test_dimension_of_a_local_model_is_another_generation(default_model: Path) -> None:
    plain = ConfiguredModels(NOWHERE, default_model.parents[1], {})
    cut = ConfiguredModels(replace(NOWHERE, dimension=128), default_model.parents[1], {})
    with closing(plain.load(quiet)) as whole, closing(cut.load(quiet)) as short:
        assert short.identity.dimension == 128
        assert short.identity.fingerprint != whole.identity.fingerprint
        head = whole.embed_query("a boat")[:128]
        assert short.embed_query("a boat") @ head / (head @ head) ** 0.5 == pytest.approx(1.0, abs=1e-5)
    assert plain.recipe != cut.recipe
    with closing(plain.former(cut.recipe).load(quiet)) as former:
        assert former.identity == short.identity


# -- recipes ----------------------------------------------------------------------------------------------


def test_recipe_of_a_local_model_is_what_it_was_before_there_were_providers(tmp_path: Path) -> None:
    before = json.dumps({"model": "all-minilm-l6-v2", "query_prefix": "", "document_prefix": ""})
    for provider in ("auto", "local"):
        assert ConfiguredModels(Settings(provider=provider), tmp_path, {}).recipe == before
    assert made_with(Settings(), before) == Settings()
    assert made_with(Settings(provider="openai"), before).provider == "local"


def test_way_back_gives_no_provider_another_one_s_key_or_address(tmp_path: Path) -> None:
    openai = Settings(provider="openai", base_url="http://one", api_key_env="ONE")
    voyage = Settings(provider="voyage", base_url="http://two", api_key_file="/two")
    recipe = ConfiguredModels(openai, tmp_path, {}).recipe
    back = made_with(voyage, recipe)
    assert (back.provider, back.base_url, back.api_key_file) == ("openai", "http://one", "")
    assert changed_settings(voyage, back) == {"provider": "openai", "base_url": "http://one", "api_key_file": ""}
    assert choose_provider(openai, "local").api_key_env == ""
    assert choose_provider(replace(openai, provider="local", base_url=""), "openai").api_key_env == "ONE"


# -- the configuration ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('provider = "openay"', "did you mean openai"),
        ('api_key_file = "key"', "with embedder.provider, whose it is"),
        ('base_url = "http://x/v1"', "with embedder.provider, whose it is"),
        ('provider = "local"\nbase_url = "http://x/v1"', "asked nowhere"),
        ('provider = "openai-compatible"\nmodel = "x"', "without its model or address"),
        ('provider = "openai-compatible"\nbase_url = "http://x/v1"', "without its model or address"),
        ('provider = "openai"\nbase_url = "http://me:secret@x/v1"', "cannot be asked"),
        ('provider = "openai"\nbase_url = "https://x/v1?key=secret"', "cannot be asked"),
        ('provider = "openai"\nbase_url = "api.openai.com"', "cannot be asked"),
        ('provider = "openai"\napi_key_env = "sk-secret-123"', "a hidden value"),
    ],
)
def test_contradiction_is_told(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[embedder]\n{text}\n")
    with pytest.raises(ConfigInvalid) as caught:
        load_config(file, {}, tmp_path)
    (told,) = caught.value.problems
    assert problem in told
    assert "secret" not in told


def test_key_is_nowhere_in_the_configuration_as_it_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[embedder]\nprovider = "openai"\napi_key_env = "MY_KEY"\n')
    environ = {"MY_KEY": KEY, "MEMORYD_OPENAI_API_KEY": KEY, "MEMORYD_VOYAGE_API_KEY_FILE": "/run/key"}
    config = load_config(file, environ, tmp_path)
    shown = render_config(config) + json.dumps(to_json(config))
    assert KEY not in shown
    assert 'api_key_env = "MY_KEY"' in shown
