"""Hooks of schemathesis: what the document cannot say, one excuse for each operation, check and rule.

An answer under soft_fail is judged by the status that it stands for (D8). The file that EXCUSES_USED names gets a line for each use.
"""

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


PART = "docs/api.md: start and end stand instead of max_duration"
ENDS = "docs/api.md: end is greater than start"
is_part_twice, ends_early = says("max_duration cannot be used with start or end"), says("end must be greater than start")
DELETED = "docs/api.md: DELETE cancels, and what it cancelled can be read"
STRIPPED = "RFC 9110, 5.5: white space around the value of a header is no part of it"

# Each long form uses all of these; one that is used no more has to go.
USUAL = [
    *each(["downloadVideo", "downloadAudio"], REFUSED, "docs/api.md: a number of a query has no exponent", has_exponent),
    *each(["downloadVideoByPost", "downloadAudioByPost", "startBatch"], REFUSED, PART, is_part_twice),
    *each(["startBatch"], REFUSED, "docs/api.md: items of the endpoint audio are audio", says(r"items\[[0-9]+\]: download_type must be audio")),
    *each(["startBatch"], REFUSED, "docs/api.md: max_items and max_credits", says("max_(items|credits) is [0-9]+, but there are")),
    *each(["listJobs"], REFUSED, "docs/api.md: a cursor comes from the service", says("cursor must be the next_cursor of an earlier answer")),
    *each(["getUsageHistory"], REFUSED, "docs/api.md: at most 92 days", says("from must not be after to, and not 92 days")),
    *each(["getStats"], REFUSED, "D51: an engine or a path", says("engine or path is required")),
    *each(["getStats"], REFUSED, "D51: a path of the engine", says("path must be /v1/")),
]
# Random data meets these in some runs only.
SELDOM = [
    *each([*CREDIT_POSTS, "startBatch"], ACCEPTED, "D5: flags and numbers may be spelled in a body as in a query", is_spelled_right),
    *each(CREDIT_POSTS, ACCEPTED, "D96: a parameter of the body wins", is_shadowed),
    *each(KEPT, ACCEPTED, STRIPPED, is_stripped),
    *each(["getJob"], REFUSED, "docs/api.md: a number of a query has no exponent", has_exponent),
    *each(["downloadVideo", "downloadAudio"], REFUSED, PART, is_part_twice),
    *each([*DOWNLOADS, "startBatch"], REFUSED, ENDS, ends_early),
    *each(["startBatch"], REFUSED, "docs/api.md: a playlist is the one item", says("items must be a list of the one playlist")),
    *each(["getJob", "streamJobEvents", "getBatch"], FREED, DELETED, always),
]


@schemathesis.hook
def after_call(context, case, response):
    """Has an answer judged by the status that it stands for."""
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
