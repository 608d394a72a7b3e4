"""Hooks of schemathesis for what a document of the API cannot say: soft_fail, and that a parameter of the body wins; a check of refusals."""

import os
import re

import schemathesis

IS_OFF = "WITHOUT_SOFT_FAIL" in os.environ
JUDGES_REFUSALS = "JUDGES_REFUSALS" in os.environ
# What no schema can say: of two parameters together, of items of another endpoint, of what is ours, of addresses, of lengths in bytes.
# Of control characters the schema speaks, with surrogates beside them, which the regular expressions of schemathesis cannot read.
UNSAID = re.compile(
    "max_duration cannot be used with start or end"
    "|end must be greater than start"
    "|must be the next_cursor of an earlier answer"
    "|engine or path is required|(engine|path) must be (one of |/v1/)"
    "|from must not be after to, and not 92 days|must be a day since 1970"
    "|(query|webhook_url) must be an? .*URL|fields must be at most 100 names"
    r"|items\[[0-9]+\]: download_type must be audio|items must be a list of the one playlist"
    "|none of them a control character"
    "|max_(credits|items) is [0-9]+, but there are"
)
GOOD_KEY = re.compile(r"[ \t]*[!-~]([ -~]{0,253}[!-~])?[ \t]*")


@schemathesis.hook
def before_call(context, case, kwargs):
    """Names a parameter once, because of two only that of the body is judged (D96): the one that is to be wrong.

    A run whose checks send requests of their own, which no hook sees the answers of, asks nothing under soft_fail.
    """
    query, body = case.query, case.body
    if isinstance(query, dict) and isinstance(body, dict):
        components = case.meta.components if case.meta else {}
        is_wrong = any(part.value == "query" and info.mode.value == "negative" for part, info in components.items())
        for name in query.keys() & body.keys():
            (body if is_wrong else query).pop(name)
    for part in (query, body):
        if IS_OFF and isinstance(part, dict):
            part.pop("soft_fail", None)
    # A number of a query is written without an exponent.
    for name, value in (query or {}).items() if isinstance(query, dict) else ():
        if re.fullmatch(r"[0-9.]+e-?[0-9]+", str(value)) and case.meta and case.meta.generation.mode.is_positive:
            query[name] = 1.5
    # Spaces at the ends of a header are no part of its value: a key that is wrong for them alone is right when it arrives.
    for name, value in (case.headers or {}).items():
        if name.lower() == "idempotency-key" and value != value.strip() and GOOD_KEY.fullmatch(value):
            case.headers[name] = value + "x" * 256


@schemathesis.hook
def after_call(context, case, response):
    """Has an answer judged by the status that it stands for."""
    real = response.headers.get("x-original-status")
    if real:
        response.status_code = int(real[0])


@schemathesis.check
def valid_data_refusal(ctx, response, case):
    """Has every refusal of data that fits the schema stand for something that no schema can say."""
    if not JUDGES_REFUSALS or response.status_code != 400 or case.meta is None or not case.meta.generation.mode.is_positive:
        return
    # What a message of the Model Context Protocol is, its own schema says.
    if case.path == "/mcp":
        return
    sentence = response.json()["error"]
    assert UNSAID.search(sentence), f"valid data was refused: {sentence}"
