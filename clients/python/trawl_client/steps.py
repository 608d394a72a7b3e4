"""Calls to the service as generators of steps, which the sync and the async client carry out alike."""

from __future__ import annotations

import json
import math
import random
import re
import ssl
import time
import uuid
from collections.abc import Generator
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Protocol, TypeVar

import httpx

from .errors import TrawlError

T = TypeVar("T")
Steps = Generator["Send | Open | Read | Sleep", Any, T]

USUAL_TRY_SECONDS = 20.0
QUIET_SECONDS = 60.0
# Every wait for a job holds a connection.
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20)
FIRST_WAIT_SECONDS = 0.2
MAX_WAIT_SECONDS = 10.0
MAX_PORT = 65_535
BARE = re.compile(r"[^\s?#]*")
VISIBLE = re.compile(r"[!-~]+")
PRINTABLE = re.compile(r"[!-~]([ -~]*[!-~])?")
# A failure of the service itself is seldom cured by asking on and on.
MAX_INTERNAL_ERRORS = 3


class Answer(Protocol):
    """The part of an httpx response that steps read."""

    status_code: int

    @property
    def headers(self) -> Any: ...

    @property
    def text(self) -> str: ...


@dataclass(frozen=True)
class WholeAnswer:
    """An answer that was read to its end."""

    status_code: int
    headers: httpx.Headers
    text: str


@dataclass(frozen=True)
class Send:
    """Sends a request and reads its whole answer; `timeout` limits both together."""

    method: str
    url: str
    headers: dict[str, str]
    content: str | None = None
    timeout: float = USUAL_TRY_SECONDS


@dataclass(frozen=True)
class Open:
    """Opens an answer without reading its body, unless it is an error. Every other step but Read closes it.

    `follow` is for requests without the key alone: it would go along with a redirect.
    """

    url: str
    headers: dict[str, str]
    follow: bool = False


@dataclass(frozen=True)
class Read:
    """Reads the next bytes of the opened answer; None at its end."""


@dataclass(frozen=True)
class Sleep:
    """Waits before the next try."""

    seconds: float


@dataclass
class Patience:
    """Time for which a silent service is waited for, counted from the last sign of life."""

    limit: float
    since: float = field(default_factory=time.monotonic)
    failures: int = 0

    def heard(self) -> None:
        self.since = time.monotonic()
        self.failures = 0

    def wait(self, error: TrawlError) -> Steps[None]:
        """Waits before the next try; raises the error when the time is over."""
        self.failures += 1
        longest = min(MAX_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** (self.failures - 1))
        # Half of the wait is random, so that many clients do not come back at once.
        seconds = max(longest * random.uniform(0.5, 1), error.retry_after_seconds or 0)
        if time.monotonic() + seconds - self.since > self.limit:
            raise error
        yield Sleep(seconds)


@dataclass(frozen=True)
class Service:
    """A service and the key that is sent to it, and to no other address."""

    url: str
    key: str
    patience_seconds: float
    # End of every try and wait, on the clock of `time.monotonic`.
    deadline: float = math.inf
    # Origins that have answered: what is wrong on the way to one of them, such as a certificate that has expired, may pass.
    answered: set[str] = field(default_factory=set, compare=False)

    def __post_init__(self) -> None:
        if not VISIBLE.fullmatch(self.key):
            raise TrawlError("invalid_api_key", "The API key must be given, and have visible ASCII characters alone")
        try:
            url = httpx.URL(self.url)
        except httpx.InvalidURL:
            url = httpx.URL("")
        # Paths are appended to the text itself, behind a blank or a query, too.
        is_bare = BARE.fullmatch(self.url) and not url.userinfo and (url.port or 0) <= MAX_PORT
        if url.scheme not in ("http", "https") or not url.host or not is_bare:
            sentence = "The address of the service must be an http or https URL without user, password, query, fragment and blanks"
            raise TrawlError("bad_request", sentence)

    def headers(self, more: dict[str, str] | None = None) -> dict[str, str]:
        return {"x-api-key": self.key, **(more or {})}

    def ask(
        self,
        path: str,
        member: str,
        method: str = "GET",
        body: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
        timeout: float = USUAL_TRY_SECONDS,
        unrepeated: str | None = None,
    ) -> Steps[Any]:
        """Repeats a call until it is answered for good, and returns the JSON of its answer, which must have that member.

        A refusal with the code `unrepeated` is raised at once although it may pass by itself.
        """
        headers = self.headers()
        if body is not None:
            headers["content-type"] = "application/json"
        if idempotency_key is not None:
            if not PRINTABLE.fullmatch(idempotency_key):
                sentence = "The idempotency key must be visible ASCII characters, with spaces only between them"
                raise TrawlError("bad_request", sentence)
            headers["idempotency-key"] = idempotency_key
        content = None if body is None else json.dumps(body)
        patience = Patience(min(self.patience_seconds, self.left_seconds()))
        internal_errors = 0
        while True:
            try:
                answer = yield Send(method, self.url + path, headers, content, min(timeout, self.left_seconds()))
                return self.read_json(answer, member)
            except TrawlError as error:
                internal_errors += error.status == 500
                if not may_repeat(error) or internal_errors >= MAX_INTERNAL_ERRORS or error.code == unrepeated:
                    raise
                refusal = error
            yield from patience.wait(refusal)

    def note_answer(self, step: Send | Open | Read | Sleep) -> None:
        if isinstance(step, (Send, Open)):
            self.answered.add(origin_of(step.url))

    def failure(self, url: str, cause: BaseException, handled: BaseException | None) -> TrawlError:
        """Returns the error of a step that failed while the caller handled another one."""
        return unreachable(url, cause, origin_of(url) in self.answered or not is_hopeless(cause, handled))

    def left_seconds(self) -> float:
        return max(0.0, self.deadline - time.monotonic())

    def read_json(self, answer: Answer, member: str) -> Any:
        require_ok(answer)
        value = parse(answer.text)
        if not isinstance(value, dict) or member not in value:
            sentence = f"{self.url} does not answer as trawl does"
            raise TrawlError("not_trawl", sentence, status=answer.status_code)
        return value


def key_of_call(given: str | None) -> str:
    """Returns the Idempotency-Key of a call, a random one unless given; an empty one is refused when it is sent."""
    return str(uuid.uuid4()) if given is None else given


def may_repeat(error: TrawlError) -> bool:
    """Returns true for an error that passes by itself."""
    # A repeat may meet the first call, which still runs; a conflict with another call names no time to wait.
    is_running = error.code == "idempotency_conflict" and error.retry_after_seconds is not None
    is_limited = error.code == "rate_limited" and error.retryable
    is_away = error.code == "unreachable" and error.retryable
    return is_running or is_away or is_limited or (error.status or 0) >= 500


def unreachable(url: str, cause: object, retryable: bool = True) -> TrawlError:
    """Returns the error of a call that brought no answer."""
    sentence = f"No way to {origin_of(url)}: {str(cause) or type(cause).__name__}"
    return TrawlError("unreachable", sentence, retryable=retryable)


def origin_of(url: str) -> str:
    """Returns the part of a URL that may be told: the rest may be a signature."""
    parts = httpx.URL(url)
    return f"{parts.scheme}://{parts.netloc.decode()}"


def is_hopeless(cause: BaseException | None, handled: BaseException | None) -> bool:
    """Returns true for an error that no waiting ends, which httpx may hide behind others.

    It is a wrong certificate, https asked of a port that speaks http, or a proxy that opens no way. Python links `handled`,
    the error that the caller handles meanwhile, behind all of them.
    """
    while cause is not None and cause is not handled:
        is_barred = isinstance(cause, httpx.ProxyError) and str(cause)[:3] in ("403", "407")
        is_plain = isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER"
        if is_barred or is_plain or isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def require_ok(answer: Answer) -> None:
    """Raises the refusal of an answer that is none of success."""
    # Under soft_fail the status of a refusal is 200.
    status = int(answer.headers.get("x-original-status") or answer.status_code)
    if 200 <= status < 300:
        return
    said = parse(answer.text)
    sentence = said.get("error") if isinstance(said, dict) else None
    told = answer.headers.get("x-error-code")
    retry_after_seconds = read_retry_after(answer.headers)
    # A limit of the service that passes says when; a batch above one without that never fits.
    never_fits = told == "rate_limited" and retry_after_seconds is None
    raise TrawlError(
        told or code_of(status),
        str(sentence or f"The service answered with status {status}"),
        status=status,
        request_id=answer.headers.get("x-request-id"),
        retry_after_seconds=retry_after_seconds,
        retryable=False if never_fits else None,
    )


def code_of(status: int) -> str:
    """Returns the code of an answer that has none: a proxy in between has its own limits and failures."""
    if status == 429:
        return "rate_limited"
    return "unavailable" if status >= 500 else "not_trawl"


def read_retry_after(headers: Any) -> int | None:
    """Returns the seconds to wait; those until a date are counted by the clock of its sender."""
    wait = headers.get("retry-after", "")
    if wait.isdecimal() and len(wait) <= 6:
        return int(wait)
    end, sent = (read_date(headers.get(name, "")) for name in ("retry-after", "date"))
    return None if end is None or sent is None else max(0, math.ceil(end - sent))


def read_date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() if text.endswith(" GMT") else None
    except (ValueError, OverflowError):
        return None


def parse(text: str) -> Any:
    """Returns the value of a JSON text; None for the text of a proxy in between."""
    try:
        return json.loads(text)
    except ValueError:
        return None
