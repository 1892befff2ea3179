"""What the description says of the methods is what a real server takes and answers."""

import copy
import json

import jsonschema
import pytest

from memoryd.daemon.config import Llm
from memoryd.jobs.ingest.fact import fact_id
from tests.support.chat_server import run_chat_server

# These grow with what there is to tell; what they have is checked, what they have besides is not.
GROWING = {"FullStatus", "BriefStatus", "ProgressEvent", "EmbedderProgress"}

STATEMENT = "The lamp of the lighthouse is lit at dusk."
LAMP = fact_id("notes", "skills/lamp.md", STATEMENT)

ASKED = {
    "initialize": [{}, {"protocol_version": 1, "client": "test/1"}],
    "search": [
        {"query": "lighthouse"},
        {"query": "lighthouse", "explain": True, "fence": True, "limit": 1, "min_score": 0},
        {"query": "lighthouse", "settings": {"mmr": True}, "explain": True, "min_score": 0},
        {"query": "nowhere to be found", "min_score": 1},
        {"query": "keeper", "include_superseded": True, "source": "memory", "path": ["memory/**"]},
        {"query": "keeper in November 2026", "explain": True},
        {"query": "keeper", "after": "2026-01-01", "before": "2026-12-31", "as_of": "2026-12-01", "explain": True},
        {"query": "keeper", "scope": "user:ann", "exclude": ["memory/b.md"], "workspace": "notes"},
        {"query": "keeper", "hyde": True},
        {"query": "keeper", "cached": False},
    ],
    "why_not": [
        {"query": "lighthouse", "passage": "memory/a.md:1"},
        {"query": "violin", "passage": "memory/a.md", "line": 1, "limit": 1, "min_score": 1},
        {"query": "violin", "passage": "memory/none.md:1"},
    ],
    "get": [{"path": "memory/a.md"}, {"path": "memory/a.md", "from": 1, "to": 2, "fence": True}],
    "status": [{}, {"brief": True}],
    "index": [{}, {"path": "memory", "workspace": ["notes"], "wait": False}],
    "verify": [{}, {"workspace": "notes", "repair": True}],
    "ingest": [{"dry_run": True}, {}, {"paths": "skills/*.md", "workspace": ["notes"]}],
    "ingest.status": [{}],
    "facts.list": [{}, {"workspace": "notes", "path": ["skills/**"], "category": "tool", "superseded": True}],
    "facts.show": [{"id": LAMP}],
    "facts.forget": [{"id": [LAMP]}],
    "model.use": [{"model": "/nowhere/else.gguf"}],
    "model.prune": [{}],
    "settings.set": [{"settings": {"fusion": "rrf", "weights": {"vector": 0.5}}}, {"reset": True}],
    "events.subscribe": [{}, {"events": "document", "workspace": "notes"}],
    "$/cancelRequest": [{"id": "nothing"}],
}
REFUSED = {
    "search": [
        {},
        {"query": ""},
        {"query": " "},
        {"query": 1},
        *({"query": "x", **more} for more in ({"limit": 0}, {"limit": 101}, {"limit": 1.5}, {"min_score": 2})),
        *({"query": "x", **more} for more in ({"cached": 0},)),
        *({"query": "x", **more} for more in ({"explain": "yes"}, {"source": [1]}, {"settings": []}, {"nonsense": 1})),
    ],
    "get": [{}, {"path": ""}, {"path": "a", "from": 0}, {"path": ["a"]}],
    "events.subscribe": [{"events": ["weather"]}, {"events": {"document": True}}],
    "$/cancelRequest": [{}, {"id": None}, {"id": [1]}],
    "initialize": [{"protocol_version": 0}, {"protocol_version": "1"}],
    "ping": [{"x": 1}],
}


@pytest.fixture
def asked(memory, served, raw_client, path):
    memory.write("memory/a.md", "# Coast\n\nThe lighthouse keeper sleeps.\n")
    memory.write("memory/2026-11-15.md", "---\nscope: user:ann\n---\nThe lighthouse keeper wakes.\n")
    memory.write("memory/b.md", "---\nsuperseded_by: memory/a.md\n---\nThe old keeper of the lighthouse.\n")
    memory.write("skills/lamp.md", f"# Lamp\n\n{STATEMENT}\n")
    with run_chat_server() as server:
        server.rule = lambda _body: json.dumps({"fact": STATEMENT, "category": "tool"})
        memory.configure(llm=Llm(provider="openai-compatible", model="m", base_url=server.url))
        with served(memory, path), raw_client(path) as client:
            memory.settle()
            assert call(client, "ingest", {})["result"]["stored"] == 1
            memory.settle()
            yield client


def call(client, method, params):
    client.send({"jsonrpc": "2.0", "id": "asked", "method": method, "params": params})
    while (answer := client.read()).get("id") != "asked":
        assert answer["method"].startswith("events.")
    return answer


def closed(description):
    """The description with no room for what it does not mention."""
    description = copy.deepcopy(description)
    for name, schema in description["components"]["schemas"].items():
        if name not in GROWING:
            schema["additionalProperties"] = False
    return description


def check(value, schema, description):
    whole = {**schema, "components": description["components"]}
    jsonschema.Draft7Validator(whole).validate(value)


def params_schema(method):
    return {
        "type": "object",
        "properties": {param["name"]: param["schema"] for param in method["params"]},
        "required": [param["name"] for param in method["params"] if param["required"]],
        "additionalProperties": False,
    }


def check_error(answer, description):
    error = answer["error"]
    known = description["components"]["errors"][error["data"]["code"]]
    assert error["code"] == known["code"]
    assert error["data"].keys() == known["data"].keys()
    assert error["data"]["retryable"] == known["data"]["retryable"]
    assert error["message"]


def test_every_method_takes_and_answers_what_the_description_says(asked):
    description = closed(call(asked, "rpc.discover", {})["result"])
    for method in description["methods"]:
        for params in ASKED.get(method["name"], [{}]):
            check(params, params_schema(method), description)
            answer = call(asked, method["name"], params)
            if method["name"] in ASKED:
                assert "result" in answer, (method["name"], params, answer)
            if "error" in answer:
                check_error(answer, description)
            else:
                check(answer["result"], method["result"]["schema"], description)


def test_what_the_description_forbids_is_refused(asked):
    description = call(asked, "rpc.discover", {})["result"]
    methods = {method["name"]: method for method in description["methods"]}
    for name, bad in REFUSED.items():
        for params in bad:
            with pytest.raises(jsonschema.ValidationError):
                check(params, params_schema(methods[name]), description)
            answer = call(asked, name, params)
            check_error(answer, description)
            assert answer["error"]["data"]["code"] == "invalid_params", (name, params)


def test_notifications_say_what_the_description_says(asked, memory):
    description = closed(call(asked, "rpc.discover", {})["result"])
    notifications = {each["name"]: each["params"] for each in description["x-notifications"]}
    asked.ask("events.subscribe")
    memory.write("memory/new.md", "A violin.\n")
    memory.live.look_at_disk()
    wanted = set(notifications) - {"events.dropped"}
    while wanted:
        message = asked.read()
        if "method" in message:
            check(message["params"], notifications[message["method"]], description)
            wanted.discard(message["method"])
    check({"count": 3}, notifications["events.dropped"], description)


def test_description_is_itself_sound(asked):
    description = call(asked, "rpc.discover", {})["result"]
    for method in description["methods"]:
        for schema in (method["result"]["schema"], params_schema(method)):
            jsonschema.Draft7Validator.check_schema({**schema, "components": description["components"]})
    assert {method["name"] for method in description["methods"]} == set(
        call(asked, "initialize", {})["result"]["methods"]
    )
