"""Client of trawl, a metered media-download service."""

from .api_types import Batch, BatchRequest, Day, Job, Metadata, Usage
from .async_client import AsyncResultFile, AsyncTrawl
from .errors import TrawlError
from .sync_client import ResultFile, Trawl
from .webhook import WebhookEvent, verify_webhook

__all__ = [
    "AsyncResultFile",
    "AsyncTrawl",
    "Batch",
    "BatchRequest",
    "Day",
    "Job",
    "Metadata",
    "ResultFile",
    "Trawl",
    "TrawlError",
    "Usage",
    "WebhookEvent",
    "verify_webhook",
]
