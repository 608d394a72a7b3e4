# Written by clients/generate; do not edit.

from __future__ import annotations

from typing import Any, Literal, TypedDict

from typing_extensions import NotRequired


class Error(TypedDict):
    error: str


class Accepted(TypedDict):
    job_id: str


class AcceptedBatch(TypedDict):
    batch_id: str


class Counts(TypedDict):
    queued: int
    running: int
    completed: int
    failed: int


class Credits(TypedDict):
    held: int
    charged: int


class WebhookBatch(TypedDict):
    id: str
    status: Literal['Running', 'Completed', 'Cancelled']
    counts: Counts
    credits: Credits


class JobEvent(TypedDict):
    id: str
    event: Literal['progress', 'end']
    data: str


class WebhookFailed(TypedDict):
    id: str
    status: Literal['Error']
    error: str


class WebhookTest(TypedDict):
    id: str
    type: Literal['test']
    created_at: str


class Metadata(TypedDict):
    id: str | None
    ext: str | None
    title: str | None
    width: int | None
    height: int | None
    channel: str | None
    channel_url: str | None
    is_live: bool | None
    was_live: bool | None
    live_status: Literal['not_live', 'is_live', 'is_upcoming', 'was_live', 'post_live'] | None
    duration: float | None
    extractor: str | None
    thumbnail: str | None
    like_count: int | None
    view_count: int | None
    description: str | None
    upload_date: int | None
    webpage_url: str | None
    original_url: str | None


class Queue(TypedDict):
    position: int
    eta_seconds: float | None
    reason: str


class Result(TypedDict):
    metadata: Metadata | None
    response: str | None
    expires_at: NotRequired[str | None]
    bytes: NotRequired[int]
    sha256: NotRequired[str]
    content_type: NotRequired[str]


class Job1(TypedDict):
    query: str | None
    job_id: str
    status: Literal['QueuedJob', 'Running', 'CompletedJob', 'Error', 'NotFound', 'BadRequest'] | None
    error: str | None
    error_code: str | None


class Batch(TypedDict):
    id: str
    status: Literal['Running', 'Completed', 'Cancelled']
    counts: Counts
    credits: Credits
    jobs: list[Job1]
    next_cursor: str | None


class Pack(TypedDict):
    id: str
    title: str
    purchased_at: str
    total: int
    used: int
    remaining: int
    percent_used: float
    exhausted: bool


class Period(TypedDict):
    start: str
    end: str


class Subscription(TypedDict):
    total: int
    used: int
    remaining: int
    percent_used: float


class Packs(TypedDict):
    count: int
    exhausted_count: int
    all_exhausted: bool
    total: int
    used: int
    remaining: int
    percent_used: float
    current_index: int
    current: Pack | None
    items: list[Pack]


class Credits2(TypedDict):
    given: int
    consumed: int
    remaining: int
    percent_used: float


class RateLimit(TypedDict):
    per_minute: int | None
    per_second: int | None


class Account(TypedDict):
    name: str
    slug: str


class Quotas(TypedDict):
    total: int | None
    daily: int | None
    weekly: int | None
    monthly: int | None


class ApiKey(TypedDict):
    alias: str
    active: bool
    category: str
    expires: str | None
    quotas: Quotas


class Usage(TypedDict):
    remaining: int
    total_used: int
    held: int
    renewal_date: str | None
    period: Period
    subscription: Subscription
    packs: Packs | None
    credits: Credits2
    rate_limit: RateLimit
    account: Account
    api_key: ApiKey


class Day(TypedDict):
    day: str
    key: str
    calls: int
    credits: int
    completed: int
    failed: int


class UsageHistory(TypedDict):
    days: list[Day]


class ReducedUsage(TypedDict):
    plan: str
    remaining: str


class Stats(TypedDict):
    engine: str
    path: str | None
    health: Literal['operational', 'degraded', 'down']
    success_rate: float
    avg_response_time_ms: int
    window: Literal['1h']


class VideoRequest(TypedDict):
    query: str
    download_type: NotRequired[Literal['audio_video', 'audio', 'video']]
    max_duration: NotRequired[float]
    start: NotRequired[float]
    end: NotRequired[float]
    video_quality: NotRequired[Literal['best', '1080p', '720p', '480p', '360p']]
    video_format: NotRequired[Literal['mp4', 'webm', 'mkv']]
    webhook_url: NotRequired[str]
    webhook_authorization: NotRequired[str]
    soft_fail: NotRequired[bool]
    is_async: NotRequired[bool]
    fields: NotRequired[str]


class AudioRequest(TypedDict):
    query: str
    download_type: NotRequired[Literal['audio']]
    max_duration: NotRequired[float]
    start: NotRequired[float]
    end: NotRequired[float]
    audio_quality: NotRequired[Literal['best', '320kbps', '256kbps', '128kbps']]
    audio_format: NotRequired[Literal['mp3', 'm4a', 'wav']]
    webhook_url: NotRequired[str]
    webhook_authorization: NotRequired[str]
    soft_fail: NotRequired[bool]
    is_async: NotRequired[bool]
    fields: NotRequired[str]


class MetadataRequest(TypedDict):
    query: str
    soft_fail: NotRequired[bool]
    is_async: NotRequired[bool]
    fields: NotRequired[str]


class Item(TypedDict):
    query: str
    download_type: NotRequired[Literal['audio_video', 'audio', 'video']]
    max_duration: NotRequired[float]
    start: NotRequired[float]
    end: NotRequired[float]
    audio_quality: NotRequired[Literal['best', '320kbps', '256kbps', '128kbps']]
    audio_format: NotRequired[Literal['mp3', 'm4a', 'wav']]
    webhook_url: NotRequired[str]
    webhook_authorization: NotRequired[str]
    video_quality: NotRequired[Literal['best', '1080p', '720p', '480p', '360p']]
    video_format: NotRequired[Literal['mp4', 'webm', 'mkv']]


class BatchRequest(TypedDict):
    endpoint: Literal['video', 'audio', 'metadata']
    max_credits: NotRequired[int]
    max_items: NotRequired[int]
    playlist: NotRequired[bool]
    webhook_url: NotRequired[str]
    webhook_authorization: NotRequired[str]
    items: list[Item]


class ResultModel(TypedDict):
    metadata: Metadata | None
    response: str | None


class WebhookCompleted(TypedDict):
    id: str
    status: Literal['CompletedJob']
    result: ResultModel


class Job(TypedDict):
    id: str
    status: Literal['QueuedJob', 'Running', 'CompletedJob', 'Error', 'NotFound', 'BadRequest']
    success: bool | None
    endpoint: str
    created_at: str
    started_at: str | None
    completed_at: str | None
    duration_ms: float | None
    progress: int
    args: dict[str, Any]
    result: Result | None
    error: NotRequired[str | None]
    error_code: NotRequired[str | None]
    retryable: NotRequired[bool | None]
    queue: NotRequired[Queue]
    stage: NotRequired[str | None]
    speed_bytes: NotRequired[float | None]
    eta_seconds: NotRequired[float | None]


class JobList(TypedDict):
    jobs: list[Job]
    next_cursor: str | None
