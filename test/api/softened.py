"""Hooks of schemathesis for what a document of the API does not say; a check of refusals.

Unsaid are the effect of soft_fail, how else a body may spell booleans and numbers, and that a parameter of the body wins.
"""

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
# A body may spell booleans and numbers as a query does (D5); its schema names the one form that programs should send.
FLAGS = {"soft_fail", "is_async", "playlist"}
SPELLED = re.compile("true|false|[0-9]+([.][0-9]+)?", re.IGNORECASE)
GOOD_KEY = re.compile(r"[ \t]*[!-~]([ -~]{0,253}[!-~])?[ \t]*")


@schemathesis.hook
def before_call(context, case, kwargs):
    """Names a parameter once, because of two only that of the body is judged (D96): the one that is to be wrong.

    Changes a body that is to be wrong where the service would take it as right (D5).
    A run whose checks send requests of their own, which no hook sees the answers of, asks nothing under soft_fail.
    """
    query, body = case.query, case.body
    if isinstance(query, dict) and isinstance(body, dict):
        for name in query.keys() & body.keys():
            (body if is_negative(case, "query") else query).pop(name)
    # The Model Context Protocol has values of its own, such as the version "2.0".
    if is_negative(case, "body") and case.path != "/mcp":
        misspell(body)
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


def is_negative(case, part):
    """Returns true when this part of a request is to be wrong."""
    components = case.meta.components if case.meta else {}
    return any(one.value == part and made.mode.value == "negative" for one, made in components.items())


def misspell(given):
    """Changes what the service would read as a boolean or a number though its schema has another type: 0 or 1 of a flag, "TRUE", "1.5"."""
    entries = given.items() if isinstance(given, dict) else enumerate(given) if isinstance(given, list) else ()
    for name, value in list(entries):
        if isinstance(value, str) and SPELLED.fullmatch(value):
            given[name] = value + "x"
        elif name in FLAGS and not isinstance(value, bool) and value in (0, 1):
            given[name] = 2
        else:
            misspell(value)


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
