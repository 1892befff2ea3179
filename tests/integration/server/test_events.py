"""Subscriptions over the real socket: what happens is told, and a client that does not read harms nobody."""

import json
import time

import pytest

from memoryd.daemon.dispatch import Method
from memoryd.daemon.events import Events
from memoryd.daemon.limits import Limits


def read_until(client, wanted):
    """Notifications up to the first that fits."""
    seen = []
    while True:
        message = client.read()
        assert message is not None, seen
        if "method" in message:
            seen.append((message["method"], message["params"]))
            if wanted(*seen[-1]):
                return seen


def is_document(change, path):
    return lambda method, params: method == "events.document" and (params["change"], params["path"]) == (change, path)


def test_documents_are_told_from_first_word_to_forgetting(memory, served, raw_client, path):
    with served(memory, path), raw_client(path) as client:
        memory.settle()
        client.ask("events.subscribe", events=["document"])
        assert client.read()["result"] == {"events": ["document"], "queue": 256}
        file = memory.write("memory/a.md", "The lighthouse keeper.\n")
        memory.live.look_at_disk()
        seen = read_until(client, is_document("embedded", "memory/a.md"))
        assert [params["change"] for _, params in seen] == ["indexed", "embedded"]
        assert all(params["workspace"] == "notes" for _, params in seen)
        file.unlink()
        memory.live.look_at_disk()
        read_until(client, is_document("forgotten", "memory/a.md"))
        memory.settle()
        client.ask("events.unsubscribe", id_="end")
        assert client.read() == {"jsonrpc": "2.0", "id": "end", "result": {"events": ["document"]}}
        memory.write("memory/b.md", "A violin.\n")
        memory.look()
        client.ask("ping", id_="after")
        assert client.read()["id"] == "after"


def test_progress_and_health_are_told_at_once_and_when_they_change(memory, served, raw_client, path):
    with served(memory, path), raw_client(path) as client:
        memory.settle()
        client.ask("events.subscribe", events=["progress", "health"])
        client.read()
        seen = dict(read_until(client, lambda method, _: method == "events.health"))
        assert seen["events.progress"]["current"] is True
        assert seen["events.health"]["state"] == "ok"
        memory.write("memory/a.md", "The lighthouse keeper.\n")
        memory.live.look_at_disk()
        read_until(client, lambda m, params: m == "events.progress" and params["documents"] == 1 and params["current"])
        memory.root.rename(memory.root.with_name("away"))
        seen = read_until(client, lambda m, params: m == "events.health" and params["state"] == "degraded")
        assert seen[-1][1]["reasons"][0]["code"] == "workspace_unavailable"
        memory.root.with_name("away").rename(memory.root)
        read_until(client, lambda m, params: m == "events.health" and params["state"] == "ok")


@pytest.mark.parametrize(
    "params", [{"events": ["weather"]}, {"events": 7}, {"workspace": "none"}, {"event": ["document"]}]
)
def test_subscription_to_what_is_not_there_is_refused(memory, served, raw_client, path, params):
    with served(memory, path), raw_client(path) as client:
        client.ask("events.subscribe", **params)
        assert client.read_error() == "invalid_params"


@pytest.fixture
def told_by_hand(running_server, path):
    """A server whose events the test tells itself, with small queues."""
    events = Events(time.time, queue=10, inbox=50_000)

    async def subscribe(params, session):
        session.follow(events, events.subscribe(["document"]))

    return events, lambda: running_server(
        path, {"subscribe": Method(subscribe, session=True)}, limits=Limits(write_buffer_bytes=1024)
    )


def test_client_that_does_not_read_loses_the_oldest_and_is_told_how_many(told_by_hand, raw_client, path):
    events, serve = told_by_hand
    with serve(), raw_client(path) as deaf, raw_client(path) as attentive:
        for client in (deaf, attentive):
            client.ask("subscribe")
            client.read()
        most = 3000
        for number in range(most):
            events.tell("document", change="indexed", workspace="notes", path=f"{number}", text="x" * 1000)
            message = attentive.read()
            assert message["params"]["path"] == str(number)  # in order, at once, whatever the other does
        seen = []
        while not seen or seen[-1].get("seq") != most:
            seen.append(deaf.read()["params"])
        dropped = sum(params["count"] for params in seen if "count" in params)
        got = [params["seq"] for params in seen if "seq" in params]
        assert dropped > 0
        assert dropped + len(got) == most
        assert got == sorted(got)
        gaps = [after - before - 1 for before, after in zip([0, *got], got, strict=False)]
        assert sum(gaps) == dropped
        deaf.ask("ping", id_="alive")
        assert deaf.read()["id"] == "alive"


def test_telling_costs_the_teller_nothing_that_waits_for_a_client(told_by_hand, raw_client, path):
    events, serve = told_by_hand
    with serve(), raw_client(path) as deaf, raw_client(path) as other:
        deaf.ask("subscribe")
        deaf.read()
        for number in range(40_000):
            events.tell("document", change="indexed", workspace="notes", path=f"{number}", text="x" * 1000)
        other.ask("ping")
        assert other.read()["result"] == "pong"


def test_subscriptions_end_with_their_connection(told_by_hand, raw_client, wait_until, path):
    events, serve = told_by_hand
    with serve():
        with raw_client(path) as client:
            client.ask("subscribe")
            client.read()
            assert events.wanted("document")
        wait_until(lambda: not events.wanted("document"))


def test_subscriber_is_not_idle(told_by_hand, running_server, raw_client, path):
    events, _ = told_by_hand

    async def subscribe(params, session):
        session.follow(events, events.subscribe(["document"]))

    methods = {"subscribe": Method(subscribe, session=True)}
    with running_server(path, methods, limits=Limits(idle_timeout_s=0.1)), raw_client(path) as client:
        client.ask("subscribe")
        client.read()
        with raw_client(path) as idle:
            assert idle.read() is None  # its time ran out; so would the subscriber's have
        events.tell("document", change="indexed", workspace="notes", path="a.md")
        assert client.read()["params"]["path"] == "a.md"


def test_events_are_framed_as_the_client_speaks(told_by_hand, raw_client, path):
    events, serve = told_by_hand
    with serve(), raw_client(path) as client:
        client.send_framed(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscribe"}).encode())
        client.read_framed()
        events.tell("document", change="indexed", workspace="notes", path="a.md")
        assert client.read_framed()["method"] == "events.document"
