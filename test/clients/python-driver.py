"""Carries out the commands of its standard input with the Python client, a JSON value a line, and writes their outcomes.

The one argument names the client: sync or async.
"""

import asyncio
import hashlib
import json
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

from trawl_client import AsyncTrawl, Trawl, TrawlError, verify_webhook


def carry_out(command):
    with Trawl(**settings_of(command)) as client:
        verb, url, parameters = command["verb"], command.get("url"), command.get("parameters", {})
        if verb == "download":
            stages = []
            file = client.download(url, on_progress=lambda job: stages.append(job["status"]), **parameters)
            return told(file, file.read(), stages)
        if verb == "abort":

            def interrupt(_job):
                raise KeyboardInterrupt

            try:
                client.download(url, on_progress=interrupt, **parameters)
            except KeyboardInterrupt:
                return {}
        if verb == "fail":

            def fail(_job):
                raise RuntimeError("of the caller")

            try:
                client.download(url, on_progress=fail, **parameters)
            except RuntimeError as error:
                return {"thrown": str(error)}
        if verb == "refuse":
            client.download(url, on_progress=refuse, **parameters)
        if verb == "start":
            return {"job_id": client.start(url, idempotency_key=command.get("idempotencyKey"), **parameters)}
        if verb == "wait":
            with ThreadPoolExecutor(len(command["jobIds"])) as threads:
                return [file.job_id for file in threads.map(client.wait, command["jobIds"])]
        if verb == "metadata":
            return {"title": client.metadata(url)["title"], "used": client.usage()["total_used"]}
        if verb == "batch":
            batch_id = client.start_batch(command["batch"])
            ended = client.wait_batch(batch_id)
            again = client.cancel_batch(batch_id)
            return told_of_batch(ended, again, client.usage_history())
        ids = [job["id"] for job in client.jobs()]
        return {"ids": ids, "own": [client.job(one)["id"] for one in ids]}


async def carry_out_async(command):
    async with AsyncTrawl(**settings_of(command)) as client:
        verb, url, parameters = command["verb"], command.get("url"), command.get("parameters", {})
        if verb == "download":
            stages = []
            file = await client.download(url, on_progress=lambda job: stages.append(job["status"]), **parameters)
            return told(file, await file.read(), stages)
        if verb == "abort":
            task = asyncio.current_task()
            download = asyncio.create_task(client.download(url, on_progress=lambda _job: download.cancel(), **parameters))
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, download.cancel)
            try:
                await download
            except asyncio.CancelledError:
                assert not task.cancelling()
                return {}
        if verb == "fail":

            def fail(_job):
                raise RuntimeError("of the caller")

            try:
                await client.download(url, on_progress=fail, **parameters)
            except RuntimeError as error:
                return {"thrown": str(error)}
        if verb == "refuse":
            await client.download(url, on_progress=refuse, **parameters)
        if verb == "start":
            return {"job_id": await client.start(url, idempotency_key=command.get("idempotencyKey"), **parameters)}
        if verb == "wait":
            return [file.job_id for file in await asyncio.gather(*(client.wait(one) for one in command["jobIds"]))]
        if verb == "metadata":
            metadata = await client.metadata(url)
            return {"title": metadata["title"], "used": (await client.usage())["total_used"]}
        if verb == "batch":
            batch_id = await client.start_batch(command["batch"])
            ended = await client.wait_batch(batch_id)
            again = await client.cancel_batch(batch_id)
            return told_of_batch(ended, again, await client.usage_history())
        ids = [job["id"] async for job in client.jobs()]
        return {"ids": ids, "own": [(await client.job(one))["id"] for one in ids]}


def refuse(_job):
    raise TrawlError("unavailable", "of the caller", status=503)


def settings_of(command):
    service = command["service"]
    return {"url": service["url"], "key": service["key"], "patience_seconds": service["patienceSeconds"]}


def told(file, whole, stages):
    return {"job_id": file.job_id, "sha256": file.sha256, "bytes": hashlib.sha256(whole).hexdigest(), "stages": stages}


def told_of_batch(ended, again, days):
    codes = [job["error_code"] for job in ended["jobs"]]
    return {"credits": ended["credits"], "codes": codes, "status": again["status"], "charged_in_history": sum(day["credits"] for day in days)}


def outcome_of(command):
    try:
        if command["verb"] == "verify":
            post = command["post"]
            return {"value": verify_webhook(post["body"], post["headers"], secret=post["secret"], now=post["now"])}
        if sys.argv[1] == "async":
            return {"value": asyncio.run(carry_out_async(command))}
        return {"value": carry_out(command)}
    except TrawlError as error:
        facts = {name: getattr(error, name) for name in ("code", "blame", "retryable", "status", "job_id")}
        return {"error": {**facts, "sentence": str(error)}}


for line in sys.stdin:
    print(json.dumps(outcome_of(json.loads(line))), flush=True)
