"""The client of programs without asyncio."""

from __future__ import annotations

import contextlib
import io
import math
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar, cast
from urllib.parse import urlencode

import httpx

from .api_types import Batch, BatchRequest, Day, Job, Metadata, Usage
from .batch_steps import cancel_batch, read_batch, read_history, start_batch, wait_batch
from .errors import TrawlError
from .job_steps import fetch, follow, give_up, job_path, require_file, start
from .steps import LIMITS, QUIET_SECONDS, Open, Read, Send, Service, Sleep, Steps, WholeAnswer, key_of_call

T = TypeVar("T")
Kind = Literal["video", "audio"]
Wait = Literal["stream", "poll"]
Progress = Callable[[Job], None]


class ResultFile:
    """The file of a completed job. `url` is a signed link, which works without a key until it expires."""

    def __init__(self, client: Trawl, job: Job) -> None:
        result = require_file(job)
        self._client = client
        self.job = job
        self.job_id: str = job["id"]
        self.url: str = result["response"]
        self.size: int = result["bytes"]
        self.sha256: str = result["sha256"]
        self.content_type: str = result["content_type"]
        self.title: str | None = (result.get("metadata") or {}).get("title")

    def read(self) -> bytes:
        """Fetches the file into memory, going on where a connection broke, and compares its SHA-256."""
        whole = io.BytesIO()
        self._client._fetch(self.job, whole)
        return whole.getvalue()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Fetches the file to a path, which has it only when its SHA-256 is right."""
        target = Path(path)
        part = target.with_name(f"{uuid.uuid4()}.part")
        try:
            with part.open("xb") as file:
                self._client._fetch(self.job, file)
            return part.replace(target)
        finally:
            part.unlink(missing_ok=True)


class Trawl:
    """A service of trawl, asked with one key; `patience_seconds` limits the wait for one that is away or busy."""

    def __init__(
        self, url: str, key: str, *, patience_seconds: float = 300, http: httpx.Client | None = None
    ) -> None:
        self._service = Service(url.rstrip("/"), key, patience_seconds)
        self._http = http or httpx.Client(limits=LIMITS)

    def __enter__(self) -> Trawl:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def download(
        self,
        url: str,
        *,
        kind: Kind = "video",
        wait: Wait = "stream",
        on_progress: Progress | None = None,
        idempotency_key: str | None = None,
        **parameters: Any,
    ) -> ResultFile:
        """Asks for a file and waits until it is there. One job and one charge, however often answers are lost.

        `parameters` are those of the API, such as `video_quality="720p"`. An interrupt cancels an open job, if the service answers within seconds.
        """
        once = key_of_call(idempotency_key)
        job_id: str | None = None
        try:
            job_id = self.start(url, kind=kind, idempotency_key=once, **parameters)
            return self.wait(job_id, wait=wait, on_progress=on_progress)
        except KeyboardInterrupt:
            with contextlib.suppress(TrawlError):
                self._run(give_up(self._service, kind, {"query": url, **parameters}, once, job_id))
            raise

    def start(self, url: str, *, kind: Kind = "video", idempotency_key: str | None = None, **parameters: Any) -> str:
        """Asks for a file and returns the id of its job at once."""
        once = key_of_call(idempotency_key)
        return self._run(start(self._service, kind, {"query": url, **parameters}, once))

    def wait(self, job_id: str, *, wait: Wait = "stream", on_progress: Progress | None = None) -> ResultFile:
        """Waits for the end of a job and returns its file; raises the failure of a job that made none."""
        seen = on_progress or (lambda _job: None)
        return ResultFile(self, self._run(follow(self._service, job_id, wait, seen)))

    def metadata(self, url: str, *, idempotency_key: str | None = None) -> Metadata:
        """Tells what is known of a URL, without a file. It costs one credit."""
        once = key_of_call(idempotency_key)
        answer = self._run(self._service.ask("/v1/media/metadata", "metadata", "POST", {"query": url}, once, timeout=70))
        metadata: Metadata = answer["metadata"]
        return metadata

    def job(self, job_id: str) -> Job:
        job: Job = self._run(self._service.ask(job_path(job_id), "status"))
        return job

    def jobs(self, *, status: str | None = None) -> Iterator[Job]:
        """Yields the jobs of the account, newest first."""
        cursor: str | None = ""
        while cursor is not None:
            query = {"limit": "100", **({"status": status} if status else {}), **({"cursor": cursor} if cursor else {})}
            page = self._run(self._service.ask(f"/v1/jobs?{urlencode(query)}", "jobs"))
            yield from page["jobs"]
            cursor = page["next_cursor"]

    def cancel(self, job_id: str) -> Job:
        """Cancels an open job, which then costs nothing; removes the file of one that has ended."""
        job: Job = self._run(self._service.ask(job_path(job_id), "status", "DELETE"))
        return job

    def start_batch(self, batch: BatchRequest, *, idempotency_key: str | None = None) -> str:
        """Starts up to 1,000 jobs, all or none, or one for each entry of a playlist; returns the id of the batch at once."""
        return self._run(start_batch(self._service, batch, idempotency_key))

    def batch(self, batch_id: str, *, cursor: str | None = None) -> Batch:
        """Shows a batch and a page of its jobs; `next_cursor` leads to the next one."""
        return self._run(read_batch(self._service, batch_id, cursor))

    def wait_batch(self, batch_id: str) -> Batch:
        """Waits until every job of a batch has ended, and returns it with all of its jobs; a failed one is no error."""
        return self._run(wait_batch(self._service, batch_id))

    def cancel_batch(self, batch_id: str) -> Batch:
        """Cancels the open jobs of a batch; what completed stays."""
        return self._run(cancel_batch(self._service, batch_id))

    def usage(self) -> Usage:
        usage: Usage = self._run(self._service.ask("/v1/usage", "remaining"))
        return usage

    def usage_history(self, *, first: str | None = None, last: str | None = None) -> list[Day]:
        """Tells what became of the calls, by day and key, from the first to the last day in UTC, such as `2026-03-04`."""
        return self._run(read_history(self._service, first, last))

    def _fetch(self, job: Job, file: Any) -> None:
        def restart() -> None:
            file.seek(0)
            file.truncate()

        self._run(fetch(self._service, job, file.write, restart))

    def _run(self, steps: Steps[T]) -> T:
        """Carries out each step and sends its outcome back."""
        opened: dict[str, Any] = {}
        outcome: Any = None
        url = self._service.url
        handled = sys.exc_info()[1]
        try:
            step = next(steps)
            while True:
                url = getattr(step, "url", url)
                try:
                    outcome = self._carry_out(step, opened)
                except httpx.HTTPError as error:
                    step = steps.throw(self._service.failure(url, error, handled))
                else:
                    self._service.note_answer(step)
                    step = steps.send(outcome)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            if opened:
                opened["answer"].close()

    def _carry_out(self, step: Send | Open | Read | Sleep, opened: dict[str, Any]) -> Any:
        if isinstance(step, Read):
            return next(opened["chunks"], None)
        if opened:
            opened.pop("answer").close()
            opened.clear()
        if isinstance(step, Sleep):
            return time.sleep(step.seconds)
        limit = Limit(step.timeout if isinstance(step, Send) else QUIET_SECONDS)
        if isinstance(step, Send):
            answer = self._open(limit, step.method, step.url, step.headers, step.content)
            with contextlib.closing(answer):
                return read_whole(answer)
        answer = self._open(limit, "GET", step.url, step.headers, follow=step.follow)
        opened.update(answer=answer, chunks=answer.iter_raw())
        if not answer.is_success:
            return read_whole(answer)
        limit.end = math.inf
        return answer

    def _open(
        self, limit: Limit, method: str, url: str, headers: dict[str, str], content: str | None = None, follow: bool = False
    ) -> httpx.Response:
        # Neither httpx nor httpcore reads these times: they hand them to the socket.
        timeout = httpx.Timeout(connect=cast(float, limit), read=cast(float, limit), write=cast(float, limit), pool=limit.seconds)
        request = self._http.build_request(method, url, headers=headers, content=content, timeout=timeout)
        return self._http.send(request, stream=True, follow_redirects=follow)


class Limit:
    """Timeout of a socket that is asked anew before each read and write: a number limits the silence alone, and some answers drip."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = time.monotonic() + seconds

    def __float__(self) -> float:
        left = min(self.seconds, self.end - time.monotonic())
        if left <= 0:
            raise TimeoutError("the answer does not end")
        return left

    def __index__(self) -> int:
        return math.ceil(float(self))


def read_whole(answer: httpx.Response) -> WholeAnswer:
    text = b"".join(answer.iter_bytes()).decode(errors="replace")
    return WholeAnswer(answer.status_code, answer.headers, text)
