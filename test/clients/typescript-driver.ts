import { createInterface } from 'node:readline';
import { Trawl, TrawlError, verifyWebhook } from '../../clients/typescript/src/trawl.ts';
import type { ClientCommand, ClientOutcome } from '../support/client-driver.ts';

// Carries out the commands of its standard input with the TypeScript client, a JSON value a line, and writes their outcomes.

async function carryOut(command: ClientCommand): Promise<unknown> {
  const { verb, service, url, parameters = {}, idempotencyKey, jobIds, post, batch } = command;
  const client = new Trawl(service);
  switch (verb) {
    case 'download': {
      const stages: string[] = [];
      const file = await client.download(url, { ...parameters, onProgress: ({ status }) => stages.push(status) });
      return { job_id: file.jobId, sha256: file.sha256, bytes: await hexDigest(await file.bytes()), stages };
    }
    case 'abort': {
      const stop = new AbortController();
      const onProgress = () => stop.abort();
      process.once('SIGINT', onProgress);
      await client.download(url, { ...parameters, onProgress, signal: stop.signal }).catch((error: unknown) => {
        if (!stop.signal.aborted) throw error;
      });
      return {};
    }
    case 'fail': {
      const onProgress = () => {
        throw new RangeError('of the caller');
      };
      return await client.download(url, { ...parameters, onProgress }).catch((error: unknown) => {
        if (error instanceof RangeError) return { thrown: error.message };
        throw error;
      });
    }
    case 'refuse': {
      const onProgress = () => {
        throw new TrawlError('unavailable', 'of the caller', { status: 503 });
      };
      return await client.download(url, { ...parameters, onProgress });
    }
    case 'start':
      return { job_id: await client.start(url, { ...parameters, idempotencyKey }) };
    case 'wait':
      return await Promise.all(jobIds!.map(async (jobId) => (await client.wait(jobId)).jobId));
    case 'metadata':
      return { title: (await client.metadata(url)).title, used: (await client.usage()).total_used };
    case 'jobs': {
      const ids = [];
      for await (const { id } of client.jobs()) ids.push(id);
      return { ids, own: await Promise.all(ids.map(async (id) => (await client.job(id)).id)) };
    }
    case 'batch': {
      const batchId = await client.startBatch(batch!);
      const { credits, jobs } = await client.waitBatch(batchId);
      const { status } = await client.cancelBatch(batchId);
      const history = await client.usageHistory();
      return {
        credits,
        codes: jobs.map(({ error_code }) => error_code),
        status,
        charged_in_history: history.reduce((sum, { credits }) => sum + credits, 0),
      };
    }
    case 'verify':
      return await verifyWebhook(post!.body, post!.headers, { secret: post!.secret, now: post!.now });
  }
}

async function hexDigest(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return Buffer.from(await crypto.subtle.digest('SHA-256', bytes)).toString('hex');
}

for await (const line of createInterface({ input: process.stdin })) {
  const outcome: ClientOutcome = await carryOut(JSON.parse(line)).then(
    (value) => ({ value }),
    (error: unknown) => {
      if (!(error instanceof TrawlError)) throw error;
      const { code, blame, retryable, status, jobId, message } = error;
      return { error: { code, blame, retryable, status, job_id: jobId, sentence: message } };
    },
  );
  console.log(JSON.stringify(outcome));
}
