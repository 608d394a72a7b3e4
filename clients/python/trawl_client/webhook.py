"""Verification of webhooks, as Standard Webhooks describes it."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Iterable, Sequence
from typing import Protocol

from .api_types import WebhookBatch, WebhookCompleted, WebhookFailed, WebhookTest
from .errors import TrawlError

MIN_KEY_BYTES = 24
MAX_TIME_DIGITS = 12


class WebhookHeaders(Protocol):
    """Headers of a post: those of http.server, of a framework, or a dict."""

    def items(self) -> Iterable[tuple[str, str]]: ...


# Body of a webhook: the end of a job or of a batch, told apart by `status`, or a test that a person sends from the dashboard,
# which alone has no `status`.
WebhookEvent = WebhookCompleted | WebhookFailed | WebhookBatch | WebhookTest


def verify_webhook(
    body: bytes | str,
    headers: WebhookHeaders,
    *,
    secret: str | Sequence[str],
    tolerance_seconds: float = 300,
    now: float | None = None,
) -> WebhookEvent:
    """Returns the event of a genuine post; raises `bad_signature` for any other.

    `body` is the post as received, before parsing; `secret` is `whsec_…`, several while one is being replaced.
    """
    keys = [key_of(one) for one in ([secret] if isinstance(secret, str) else secret)]
    if not keys:
        raise TrawlError("bad_signature", "No webhook secret was given")
    given = {name.lower(): value for name, value in headers.items()}
    sent_id, sent_at, signatures = (given.get(f"webhook-{name}") or "" for name in ("id", "timestamp", "signature"))
    if not (sent_id and sent_at.isdecimal() and len(sent_at) <= MAX_TIME_DIGITS and signatures):
        raise TrawlError("bad_signature", "The post carries no signature")
    if abs((time.time() if now is None else now) - int(sent_at)) > tolerance_seconds:
        raise TrawlError("bad_signature", "The post is too old, or comes from the future")
    text = bytes_of(body) if isinstance(body, str) else body
    for key in keys:
        mac = hmac.digest(key, bytes_of(f"{sent_id}.{sent_at}.") + text, "sha256")
        wanted = b"v1," + base64.b64encode(mac)
        if any(hmac.compare_digest(wanted, bytes_of(signature)) for signature in signatures.split(" ")):
            event: WebhookEvent = json.loads(text)
            return event
    raise TrawlError("bad_signature", "The signature of the post is wrong")


def bytes_of(text: str) -> bytes:
    """Returns the bytes of a text, in which some servers put lone surrogates for what is no UTF-8."""
    return text.encode(errors="surrogatepass")


def key_of(secret: str) -> bytes:
    """Returns the key in a secret; raises for one that is none, by which a forged post could pass."""
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        key = b""
    if len(key) < MIN_KEY_BYTES:
        sentence = "The webhook secret must be whsec_ and the base64 of at least 24 bytes, as the service shows it"
        raise TrawlError("bad_signature", sentence)
    return key
