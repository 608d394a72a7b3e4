"""Verification of webhooks, as Standard Webhooks describes it."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from typing_extensions import NotRequired

from .errors import TrawlError


class WebhookEvent(TypedDict):
    """Body of a webhook: the end of a job with its `status`, or a test that a person sends from the dashboard with `type` "test"."""

    id: str
    status: NotRequired[str]
    type: NotRequired[str]
    result: NotRequired[dict[str, Any]]
    error: NotRequired[str]


def verify_webhook(
    body: bytes | str,
    headers: Mapping[str, str],
    *,
    secret: str | Sequence[str],
    tolerance_seconds: float = 300,
    now: float | None = None,
) -> WebhookEvent:
    """Returns the event of a genuine post; raises `bad_signature` for any other.

    `body` is the post as received, before parsing; `secret` is `whsec_…`, several while one is being replaced.
    """
    given = {name.lower(): value for name, value in headers.items()}
    sent_id, sent_at, signatures = (given.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    if not (sent_id and sent_at.isdecimal() and signatures):
        raise TrawlError("bad_signature", "The post carries no signature")
    if abs((time.time() if now is None else now) - int(sent_at)) > tolerance_seconds:
        raise TrawlError("bad_signature", "The post is too old, or comes from the future")
    text = body.encode() if isinstance(body, str) else body
    for one in [secret] if isinstance(secret, str) else secret:
        try:
            key = base64.b64decode(one.removeprefix("whsec_"))
        except binascii.Error:
            # Not a secret: nothing fits it.
            continue
        mac = hmac.digest(key, f"{sent_id}.{sent_at}.".encode() + text, "sha256")
        wanted = b"v1," + base64.b64encode(mac)
        if any(hmac.compare_digest(wanted, signature.encode()) for signature in signatures.split(" ")):
            event: WebhookEvent = json.loads(text)
            return event
    raise TrawlError("bad_signature", "The signature of the post is wrong")
