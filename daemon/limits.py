"""How much the server takes on, for whom, and for how long."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on size, time, connections and work; beyond each the client gets a typed error or waits."""

    max_request_bytes: int = 1024 * 1024  # a longer message: request_too_large, and it is never buffered
    max_batch: int = 100  # requests in one batch; a longer one is refused as a whole
    max_connections: int = 4096  # one more: busy, then closed
    max_in_flight: int = 16  # per connection, messages not yet answered; beyond it we stop reading
    threads: int = 8  # handlers that run at the same time; the others queue
    request_timeout_s: float = 30.0  # timed_out, unless the method has its own limit
    arrival_timeout_s: float = 30.0  # for the rest of a message that has begun: timed_out, then closed
    max_answer_bytes: int = 8 * 1024 * 1024  # per connection, of batches not sent yet; beyond it: answer_too_large
    write_buffer_bytes: int = 1024 * 1024  # answers waiting for the client to read
    write_timeout_s: float = 30.0  # a client that reads nothing for so long is dropped
    idle_timeout_s: float | None = None  # without a complete request or one in flight; None: never
