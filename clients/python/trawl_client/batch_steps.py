"""Steps that start a batch of jobs, wait for its end and tell what calls have cost."""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import quote, urlencode

from .api_types import Batch, BatchRequest, Day
from .steps import Service, Sleep, Steps, key_of_call

# The service lists a playlist for up to 50 s, and may have the call wait before.
START_SECONDS = 75.0
CANCEL_SECONDS = 60.0
POLL_SECONDS = 2.0


def batch_path(batch_id: str) -> str:
    return f"/v1/batches/{quote(batch_id, safe='')}"


def start_batch(service: Service, batch: BatchRequest, idempotency_key: str | None) -> Steps[str]:
    once = key_of_call(idempotency_key)
    body = cast("dict[str, Any]", batch)
    answer = yield from service.ask("/v1/batches", "batch_id", "POST", body, once, timeout=START_SECONDS)
    return str(answer["batch_id"])


def read_batch(service: Service, batch_id: str, cursor: str | None = None) -> Steps[Batch]:
    query = "" if cursor is None else f"?{urlencode({'cursor': cursor})}"
    batch: Batch = yield from service.ask(batch_path(batch_id) + query, "jobs")
    return batch


def wait_batch(service: Service, batch_id: str) -> Steps[Batch]:
    """Waits until every job has ended, and returns the batch with all of its jobs."""
    while True:
        batch = yield from read_batch(service, batch_id)
        if batch["status"] != "Running":
            break
        yield Sleep(POLL_SECONDS)
    jobs, cursor = batch["jobs"], batch["next_cursor"]
    while cursor is not None:
        page = yield from read_batch(service, batch_id, cursor)
        jobs, cursor = [*jobs, *page["jobs"]], page["next_cursor"]
    return {**batch, "jobs": jobs, "next_cursor": None}


def cancel_batch(service: Service, batch_id: str) -> Steps[Batch]:
    batch: Batch = yield from service.ask(batch_path(batch_id), "jobs", "DELETE", timeout=CANCEL_SECONDS)
    return batch


def read_history(service: Service, first: str | None, last: str | None) -> Steps[list[Day]]:
    days = {name: day for name, day in (("from", first), ("to", last)) if day is not None}
    answer = yield from service.ask(f"/v1/usage/history?{urlencode(days)}", "days")
    history: list[Day] = answer["days"]
    return history
