"""Hooks of schemathesis: what the document cannot say, one excuse for each operation, check and rule.

A rule is a row of the contract or a page, and words of it. An answer under soft_fail is judged by the status that it stands for (D8).
The file that EXCUSES_USED names gets a line for each use; the one that UNANSWERED names, the requests without an answer.
"""

import atexit
import os
import re

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.core.jsonschema import make_validator
from schemathesis.openapi.checks import IgnoredAuth, RejectedPositiveData, UseAfterFree

ACCEPTED, REFUSED, FREED = AcceptedNegativeData, RejectedPositiveData, UseAfterFree
CREDIT = ["downloadVideo", "downloadAudio", "readMetadata"]
DOWNLOADS = [name + how for name in CREDIT[:2] for how in ("", "ByPost")]
CREDIT_POSTS = [f"{name}ByPost" for name in CREDIT]
KEPT = [*CREDIT, *CREDIT_POSTS, "retryJob", "startBatch"]
FLAGS = {"soft_fail", "is_async", "playlist"}
NUMBERS = {"max_duration", "start", "end", "max_credits", "max_items"}
SPELLED_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def says(sentence):
    """Returns true for a refusal in these words."""
    return lambda case, response: re.search(sentence, response.json()["error"]) is not None


def negative_parts(case):
    return {part.value for part, made in case.meta.components.items() if made.mode.is_negative}


def is_spelled_right(case, response):
    """Returns true for a body that fits once its flags and numbers are read as in a query."""
    return negative_parts(case) == {"body"} and fits_body(case, spelled(case.body))


def is_shadowed(case, response):
    """Returns true for a query whose wrong parameters stand in the body, too, where they are right."""
    if not isinstance(case.body, dict) or "query" not in negative_parts(case):
        return False
    declared = {name: value for name, value in (case.query or {}).items() if name in case.operation.query}
    return fits_body(case, spelled({**declared, **case.body}))


def is_stripped(case, response):
    """Returns true for an Idempotency-Key that is right without the white space around it, which HTTP takes for none of its value."""
    given = next((value for name, value in (case.headers or {}).items() if name.lower() == "idempotency-key"), "")
    is_right = re.fullmatch(r"[!-~]([ -~]{0,253}[!-~])?", given.strip(" \t")) is not None
    return negative_parts(case) == {"header"} and is_right and given != given.strip(" \t")


def has_exponent(case, response):
    """Returns true for a number of the query that Python writes as no caller does: 1e-05."""
    return says("must be a number")(case, response) and any(re.fullmatch(r"[0-9.]+e-[0-9]+", str(value)) for value in (case.query or {}).values())


def is_soft(case, response):
    return "x-original-status" in response.headers or str((case.query or {}).get("soft_fail", "")).lower() in ("true", "1")


def always(case, response):
    return True


def fits_body(case, value):
    schema = next(one.optimized_schema for one in case.operation.body if one.media_type == "application/json")
    return make_validator(schema, case.operation.schema.adapter.jsonschema_validator_cls).is_valid(value)


def spelled(given, name=None):
    if isinstance(given, dict):
        return {key: spelled(value, key) for key, value in given.items()}
    if isinstance(given, list):
        return [spelled(value) for value in given]
    if name in FLAGS and isinstance(given, (str, int, float)):
        return SPELLED_FLAGS.get(str(given).lower(), given)
    if name in NUMBERS and isinstance(given, str) and re.fullmatch(r"[0-9]+(\.[0-9]+)?", given):
        return float(given) if "." in given else int(given)
    return given


def each(operations, check, rule, is_right):
    return [(operation, check, rule, is_right) for operation in operations]


PART = "docs/api.md: instead of `max_duration`"
ENDS = "docs/api.md: greater than `start`"
is_part_twice, ends_early = says("max_duration cannot be used with start or end"), says("end must be greater than start")
DELETED = "docs/api.md: `DELETE` cancels an open job and removes the file of an ended one"
EXPONENT = "docs/api.md: a number in a query has no exponent"
STRIPPED = "RFC 9110, 5.5: white space around the value of a header is no part of it"

# Each long form uses all of these; one that is used no more has to go.
USUAL = [
    *each(["downloadVideo", "downloadAudio"], REFUSED, EXPONENT, has_exponent),
    *each(["downloadVideoByPost", "downloadAudioByPost", "startBatch"], REFUSED, PART, is_part_twice),
    *each(["listJobs"], REFUSED, "D84: a wrong cursor", says("cursor must be the next_cursor of an earlier answer")),
    *each(["getUsageHistory"], REFUSED, "docs/api.md: At most 92 days", says("from must not be after to, and not 92 days")),
    *each(["getStats"], REFUSED, "stats-engine: engine or path must be given", says("engine or path is required")),
    *each(["getStats"], REFUSED, "stats-path: belongs to the engine when both are given", says("path must be /v1/")),
]
# Random data meets these in some runs only.
SELDOM = [
    *each([*CREDIT_POSTS, "startBatch"], ACCEPTED, "docs/api.md: A body may hold both as a query spells them", is_spelled_right),
    *each(CREDIT_POSTS, ACCEPTED, "D96: the body wins", is_shadowed),
    *each(KEPT, ACCEPTED, STRIPPED, is_stripped),
    *each(["getJob"], REFUSED, EXPONENT, has_exponent),
    *each(["downloadVideo", "downloadAudio"], REFUSED, PART, is_part_twice),
    *each([*DOWNLOADS, "startBatch"], REFUSED, ENDS, ends_early),
    *each(["startBatch"], REFUSED, "docs/api.md: objects with the parameters of the endpoint", says(r"items\[[0-9]+\]: download_type must be audio")),
    *each(["startBatch"], REFUSED, "docs/api.md: the batch is refused (400) when it has more items", says("max_(items|credits) is [0-9]+, but there are")),
    *each(["startBatch"], REFUSED, "docs/api.md: With `playlist: true` the batch has one item", says("items must be a list of the one playlist")),
    *each(["getJob", "streamJobEvents", "getBatch"], FREED, DELETED, always),
]


# Requests that were sent, until their answer is there.
unanswered = {}


@schemathesis.hook
def before_call(context, case, kwargs):
    unanswered[case.id] = f"{case.operation.label}\n"


@schemathesis.hook
def after_call(context, case, response):
    """Has an answer judged by the status that it stands for."""
    unanswered.pop(case.id, None)
    real = response.headers.get("x-original-status")
    if real:
        response.status_code = int(real[0])


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Drops a failure that an excuse names, and notes its use."""
    # The id of an alias is that of its operation and a number.
    asked = re.sub(r"_[0-9]+$", "", case.operation.definition.raw["operationId"])
    for operation, check, rule, is_right in [*USUAL, *SELDOM]:
        if operation == asked and check is type(failure) and is_right(case, response):
            note(operation, check, rule)
            return False
    return type(failure) is not IgnoredAuth or not is_soft(case, response)


def note(operation, check, rule):
    with open(os.environ["EXCUSES_USED"], "a") as used:
        used.write(named(operation, check, rule) + "\n")


def named(operation, check, rule):
    return f"{operation} {check.__name__} {rule}"


@atexit.register
def note_unanswered():
    with open(os.environ.get("UNANSWERED", os.devnull), "w") as noted:
        noted.writelines(unanswered.values())
