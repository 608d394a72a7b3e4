"""The client of programs with asyncio or trio."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar
from urllib.parse import urlencode

import anyio
import httpx

from .api_types import Batch, BatchRequest, Day, Job, Metadata, Usage
from .batch_steps import cancel_batch, read_batch, read_history, start_batch, wait_batch
from .errors import TrawlError
from .job_steps import fetch, follow, give_up, job_path, require_file, start
from .steps import LIMITS, QUIET_SECONDS, Open, Read, Send, Service, Sleep, Steps, key_of_call

T = TypeVar("T")
Kind = Literal["video", "audio"]
Wait = Literal["stream", "poll"]
Progress = Callable[[Job], None]


class AsyncResultFile:
    """The file of a completed job. `url` is a signed link, which works without a key until it expires."""

    def __init__(self, client: AsyncTrawl, job: Job) -> None:
        result = require_file(job)
        self._client = client
        self.job = job
        self.job_id: str = job["id"]
        self.url: str = result["response"]
        self.size: int = result["bytes"]
        self.sha256: str = result["sha256"]
        self.content_type: str = result["content_type"]
        self.title: str | None = (result.get("metadata") or {}).get("title")

    async def read(self) -> bytes:
        """Fetches the file into memory, going on where a connection broke, and compares its SHA-256."""
        whole = io.BytesIO()
        await self._client._fetch(self.job, whole)
        return whole.getvalue()

    async def save(self, path: str | os.PathLike[str]) -> Path:
        """Fetches the file to a path, which has it only when its SHA-256 is right."""
        target = Path(path)
        part = target.with_name(f"{uuid.uuid4()}.part")
        try:
            with part.open("xb") as file:
                await self._client._fetch(self.job, file)
            return part.replace(target)
        finally:
            part.unlink(missing_ok=True)


class AsyncTrawl:
    """A service of trawl, asked with one key; `patience_seconds` limits the wait for one that is away or busy."""

    def __init__(
        self, url: str, key: str, *, patience_seconds: float = 300, http: httpx.AsyncClient | None = None
    ) -> None:
        self._service = Service(url.rstrip("/"), key, patience_seconds)
        self._http = http or httpx.AsyncClient(limits=LIMITS)

    async def __aenter__(self) -> AsyncTrawl:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def download(
        self,
        url: str,
        *,
        kind: Kind = "video",
        wait: Wait = "stream",
        on_progress: Progress | None = None,
        idempotency_key: str | None = None,
        **parameters: Any,
    ) -> AsyncResultFile:
        """Asks for a file and waits until it is there. One job and one charge, however often answers are lost.

        `parameters` are those of the API, such as `video_quality="720p"`. A cancelled task cancels an open job, if the service answers within seconds.
        """
        once = key_of_call(idempotency_key)
        job_id: str | None = None
        try:
            job_id = await self.start(url, kind=kind, idempotency_key=once, **parameters)
            return await self.wait(job_id, wait=wait, on_progress=on_progress)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True), contextlib.suppress(TrawlError):
                await self._run(give_up(self._service, kind, {"query": url, **parameters}, once, job_id))
            raise

    async def start(
        self, url: str, *, kind: Kind = "video", idempotency_key: str | None = None, **parameters: Any
    ) -> str:
        """Asks for a file and returns the id of its job at once."""
        once = key_of_call(idempotency_key)
        return await self._run(start(self._service, kind, {"query": url, **parameters}, once))

    async def wait(self, job_id: str, *, wait: Wait = "stream", on_progress: Progress | None = None) -> AsyncResultFile:
        """Waits for the end of a job and returns its file; raises the failure of a job that made none."""
        seen = on_progress or (lambda _job: None)
        return AsyncResultFile(self, await self._run(follow(self._service, job_id, wait, seen)))

    async def metadata(self, url: str, *, idempotency_key: str | None = None) -> Metadata:
        """Tells what is known of a URL, without a file. It costs one credit."""
        once = key_of_call(idempotency_key)
        answer = await self._run(self._service.ask("/v1/media/metadata", "metadata", "POST", {"query": url}, once, timeout=70))
        metadata: Metadata = answer["metadata"]
        return metadata

    async def job(self, job_id: str) -> Job:
        job: Job = await self._run(self._service.ask(job_path(job_id), "status"))
        return job

    async def jobs(self, *, status: str | None = None) -> AsyncIterator[Job]:
        """Yields the jobs of the account, newest first."""
        cursor: str | None = ""
        while cursor is not None:
            query = {"limit": "100", **({"status": status} if status else {}), **({"cursor": cursor} if cursor else {})}
            page = await self._run(self._service.ask(f"/v1/jobs?{urlencode(query)}", "jobs"))
            for job in page["jobs"]:
                yield job
            cursor = page["next_cursor"]

    async def cancel(self, job_id: str) -> Job:
        """Cancels an open job, which then costs nothing; removes the file of one that has ended."""
        job: Job = await self._run(self._service.ask(job_path(job_id), "status", "DELETE"))
        return job

    async def start_batch(self, batch: BatchRequest, *, idempotency_key: str | None = None) -> str:
        """Starts up to 1,000 jobs, all or none, or one for each entry of a playlist; returns the id of the batch at once."""
        return await self._run(start_batch(self._service, batch, idempotency_key))

    async def batch(self, batch_id: str, *, cursor: str | None = None) -> Batch:
        """Shows a batch and a page of its jobs; `next_cursor` leads to the next one."""
        return await self._run(read_batch(self._service, batch_id, cursor))

    async def wait_batch(self, batch_id: str) -> Batch:
        """Waits until every job of a batch has ended, and returns it with all of its jobs; a failed one is no error."""
        return await self._run(wait_batch(self._service, batch_id))

    async def cancel_batch(self, batch_id: str) -> Batch:
        """Cancels the open jobs of a batch; what completed stays."""
        return await self._run(cancel_batch(self._service, batch_id))

    async def usage(self) -> Usage:
        usage: Usage = await self._run(self._service.ask("/v1/usage", "remaining"))
        return usage

    async def usage_history(self, *, first: str | None = None, last: str | None = None) -> list[Day]:
        """Tells what became of the calls, by day and key, from the first to the last day in UTC, such as `2026-03-04`."""
        return await self._run(read_history(self._service, first, last))

    async def _fetch(self, job: Job, file: Any) -> None:
        def restart() -> None:
            file.seek(0)
            file.truncate()

        await self._run(fetch(self._service, job, file.write, restart))

    async def _run(self, steps: Steps[T]) -> T:
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
                    outcome = await self._carry_out(step, opened)
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
                await opened["answer"].aclose()

    async def _carry_out(self, step: Send | Open | Read | Sleep, opened: dict[str, Any]) -> Any:
        if isinstance(step, Read):
            return await anext(opened["chunks"], None)
        if opened:
            await opened.pop("answer").aclose()
            opened.clear()
        if isinstance(step, Sleep):
            return await anyio.sleep(step.seconds)
        if isinstance(step, Send):
            # The timeouts of httpx limit the silence alone, and some answers drip.
            with anyio.move_on_after(step.timeout):
                return await self._http.request(
                    step.method,
                    step.url,
                    headers=step.headers,
                    content=step.content,
                    timeout=step.timeout,
                    follow_redirects=False,
                )
            raise httpx.ReadTimeout("the answer does not end")
        request = self._http.build_request("GET", step.url, headers=step.headers, timeout=QUIET_SECONDS)
        with anyio.move_on_after(QUIET_SECONDS):
            answer = await self._http.send(request, stream=True, follow_redirects=step.follow)
            opened.update(answer=answer, chunks=answer.aiter_raw())
            if not answer.is_success:
                await answer.aread()
            return answer
        raise httpx.ReadTimeout("the answer does not end")
