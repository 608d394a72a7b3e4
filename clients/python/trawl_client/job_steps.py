"""Steps that start a job, wait for its end and fetch its file."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast
from urllib.parse import quote

from .api_types import Job
from .errors import TrawlError
from .steps import Answer, Open, Patience, Read, Service, Sleep, Steps, may_repeat, require_ok, unreachable

Seen = Callable[[Job], None]

POLL_SECONDS = 25
# Between polls that are answered at once.
PLAIN_POLL_SECONDS = 5.0
# Such polls after a refused one, before a call waits again.
MAX_PLAIN_POLLS = 3
# For all calls of a download that is given up.
CANCEL_SECONDS = 10.0
# Streams that broke off without a word before polling takes their place.
MAX_EMPTY_STREAMS = 3
MAX_MISMATCHES = 2
PARTIAL = 206
CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-\d+/(\d{1,18})")
NO_FILE = "A metadata job makes no file; what it read stands in `result.metadata` of the job"
GONE = "The service does not keep the file any more"


def job_path(job_id: str) -> str:
    return f"/v1/jobs/{quote(job_id, safe='')}"


def start(service: Service, kind: str, body: dict[str, Any], once: str) -> Steps[str]:
    accepted = yield from service.ask(f"/v1/{kind}/download", "job_id", "POST", body, once)
    return str(accepted["job_id"])


def give_up(service: Service, kind: str, body: dict[str, Any], once: str, job_id: str | None) -> Steps[None]:
    """Cancels an open job; one whose id is not known yet is asked for once more, by the key of the call that was interrupted."""
    soon = replace(service, deadline=time.monotonic() + CANCEL_SECONDS)
    if job_id is None:
        job_id = yield from start(soon, kind, body, once)
    job: Job = yield from soon.ask(job_path(job_id), "status")
    # DELETE removes the file of a job that has completed and was charged, also of one that completes after this look.
    if not has_ended(job):
        yield from soon.ask(job_path(job_id), "status", "DELETE")


def has_ended(job: Job) -> bool:
    return job["status"] not in ("QueuedJob", "Running")


def follow(service: Service, job_id: str, wait: str, seen: Seen) -> Steps[Job]:
    """Waits for the end of a job, through broken streams and restarts of the service."""
    patience = Patience(service.patience_seconds)
    stream = {"last_id": "", "empty": 0}
    raised: list[BaseException] = []

    def tell(job: Job) -> None:
        try:
            seen(job)
        except BaseException as error:
            raised.append(error)
            raise

    while wait == "stream":
        try:
            job = yield from read_stream(service, job_id, stream, tell, patience)
            if job is not None:
                return job
            error = unreachable(service.url, "the stream of events broke off")
        except TrawlError as refusal:
            # An error of the callback ends the wait.
            if refusal in raised or not may_repeat(refusal):
                raise
            error = refusal
        stream["empty"] = cast(int, stream["empty"]) + 1
        if error.status is None and cast(int, stream["empty"]) >= MAX_EMPTY_STREAMS:
            break
        yield from patience.wait(error)
        if error.code == "rate_limited":
            break
    return (yield from poll(service, job_id, seen))


def poll(service: Service, job_id: str, seen: Seen) -> Steps[Job]:
    last: Job | None = None
    plain_polls = 0
    while True:
        is_held = plain_polls == 0
        path = f"{job_path(job_id)}?wait={POLL_SECONDS if is_held else 0}"
        unrepeated = "rate_limited" if is_held else None
        try:
            job: Job = yield from service.ask(path, "status", timeout=POLL_SECONDS + 15, unrepeated=unrepeated)
        except TrawlError as refusal:
            if not is_held or refusal.code != "rate_limited":
                raise
            # An account may have only so many calls that wait; those that do not are not counted.
            yield from Patience(service.patience_seconds).wait(refusal)
            plain_polls = MAX_PLAIN_POLLS
            continue
        if job != last:
            seen(job)
        if has_ended(job):
            return job
        last = job
        if not is_held:
            plain_polls -= 1
            yield Sleep(PLAIN_POLL_SECONDS)


def read_stream(
    service: Service, job_id: str, stream: dict[str, Any], seen: Seen, patience: Patience
) -> Steps[Job | None]:
    """Reads one stream of events; returns None when it ends before the job does."""
    headers = service.headers({"accept": "text/event-stream", "accept-encoding": "identity"})
    if stream["last_id"]:
        headers["last-event-id"] = stream["last_id"]
    answer = yield Open(f"{service.url}{job_path(job_id)}/events", headers)
    require_ok(answer)
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        raise unreachable(service.url, "something else came in place of events")
    text = b""
    while (chunk := (yield Read())) is not None:
        *blocks, text = (text + chunk).split(b"\n\n")
        for block in blocks:
            fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line)
            try:
                job: Job | None = json.loads(fields[b"data"]) if b"data" in fields else None
            except ValueError as error:
                raise unreachable(service.url, error) from error
            patience.heard()
            stream["empty"] = -1
            if job is None:
                continue
            stream["last_id"] = fields.get(b"id", b"").decode()
            seen(job)
            if has_ended(job):
                return job
    return None


def require_file(job: Job) -> dict[str, Any]:
    """Returns the result of a job that has ended; raises the failure of one that made no file."""
    result = job.get("result")
    if job["status"] != "CompletedJob" or result is None:
        raise TrawlError(
            job.get("error_code") or "unclassified",
            job.get("error") or "The job made no file",
            job_id=job["id"],
            retryable=job.get("retryable"),
        )
    if job["endpoint"].endswith("/media/metadata"):
        raise TrawlError("not_found", NO_FILE, job_id=job["id"])
    if result["response"] is None or "sha256" not in result:
        raise TrawlError("not_found", GONE, job_id=job["id"])
    return cast("dict[str, Any]", result)


def fetch(service: Service, job: Job, write: Callable[[bytes], object], restart: Callable[[], object]) -> Steps[None]:
    """Fetches the file of a job, going on where a connection broke, until its SHA-256 is right."""
    result = require_file(job)
    for _ in range(MAX_MISMATCHES):
        restart()
        digest = hashlib.sha256()
        yield from fetch_once(service, job["id"], result, digest, write)
        if digest.hexdigest() == result["sha256"]:
            return
    raise TrawlError("checksum_mismatch", "The file that arrived is not the one of the job", job_id=job["id"])


def fetch_once(
    service: Service, job_id: str, result: dict[str, Any], digest: Any, write: Callable[[bytes], object]
) -> Steps[None]:
    patience = Patience(service.patience_seconds)
    link: str | None = result["response"]
    received = 0
    while received < result["bytes"]:
        try:
            if link is None:
                link = (yield from sign_anew(service, job_id))
            # The key is not sent: the link is signed.
            headers = {"accept-encoding": "identity", **({"range": f"bytes={received}-"} if received else {})}
            answer = yield Open(link, headers, follow=True)
            if answer.status_code in (404, 410):
                raise TrawlError("not_found", GONE, job_id=job_id)
            if answer.status_code not in (200, PARTIAL):
                raise unreachable(link, f"the file was answered with status {answer.status_code}")
            if not is_of_file(answer, received, result["bytes"]):
                raise unreachable(link, "something else came in place of the file")
            # A server that ignores the range sends the whole.
            skip = 0 if answer.status_code == PARTIAL else received
            while (chunk := (yield Read())) is not None:
                fresh = chunk[skip:]
                skip = max(0, skip - len(chunk))
                if received + len(fresh) > result["bytes"]:
                    raise TrawlError("checksum_mismatch", "The file is longer than its job says", job_id=job_id)
                digest.update(fresh)
                write(fresh)
                received += len(fresh)
                # A server that ignores ranges brings the same bytes again and again, which leads nowhere.
                if fresh:
                    patience.heard()
            error = unreachable(link, "the connection broke off")
        except TrawlError as failure:
            if failure.code != "unreachable" or not failure.retryable:
                raise
            error = failure
        # The next try has a link of its own: this one may have expired.
        link = None
        if received < result["bytes"]:
            yield from patience.wait(error)


def is_of_file(answer: Answer, start: int, size: int) -> bool:
    """Returns false for an answer such as the page of a proxy: the SHA-256 would tell only when all the rest was fetched."""
    headers = answer.headers
    if headers.get("content-type", "").startswith("text/html"):
        return False
    if answer.status_code == PARTIAL:
        said = CONTENT_RANGE.fullmatch(headers.get("content-range", ""))
        return said is None or (int(said[1]), int(said[2])) == (start, size)
    # The length of a compressed answer is another one.
    return "content-encoding" in headers or headers.get("content-length", str(size)) == str(size)


def sign_anew(service: Service, job_id: str) -> Steps[str]:
    job: Job = yield from service.ask(job_path(job_id), "status")
    return str(require_file(job)["response"])
