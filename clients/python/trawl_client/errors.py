"""The one error of the client."""

from __future__ import annotations

from typing import Any

from .error_codes import ERROR_CODES

_CLIENT_CODES = {
    "unreachable": ("us", True),
    "not_trawl": ("caller", False),
    "checksum_mismatch": ("us", True),
    "bad_signature": ("caller", False),
}


class TrawlError(Exception):
    """A call that was refused, a job that made no file, or a service that cannot be reached.

    `blame` is the cause: caller, site or us. `retryable` is true when the same request may succeed later. `status` is
    None for a job and for a service that did not answer.
    """

    def __init__(
        self,
        code: str,
        sentence: str,
        *,
        status: int | None = None,
        job_id: str | None = None,
        request_id: str | None = None,
        retry_after_seconds: int | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(sentence)
        is_ours = (500 if status is None else status) >= 500
        unknown = ("us" if is_ours else "caller", status is not None and is_ours)
        blame, may_pass = {**ERROR_CODES, **_CLIENT_CODES}.get(code, unknown)
        self.code = code
        self.blame = blame
        self.retryable = may_pass if retryable is None else retryable
        self.status = status
        self.job_id = job_id
        self.request_id = request_id
        self.retry_after_seconds = retry_after_seconds

    def __reduce__(self) -> tuple[Any, ...]:
        """Makes the error again after pickling: a pool of processes would wait for ever for one that cannot be read."""
        return (TrawlError.__new__, (type(self), str(self)), {**self.__dict__})
