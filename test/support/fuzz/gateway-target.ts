import { createHash } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import fc from 'fast-check';
import { failures } from '../../../src/base/errors.ts';
import { makeSeal } from '../../../src/base/seal.ts';
import { makeToken, readToken } from '../../../src/controller/attempt-token.ts';
import { makeWorkerGateway } from '../../../src/controller/worker-gateway.ts';
import { readVerdict } from '../../../src/model/outcome.ts';
import { openFolder } from '../../../src/objects/folder-store.ts';
import { openListener } from '../../../src/roles/socket.ts';
import { someDelivered, someMetadata } from '../jobs.ts';
import { anAccount, aRunningJob, storeOf, theJob } from '../record.ts';
import { aFolder, aLog, startTestRedis } from '../redis.ts';
import { type Campaign, fuzz } from './campaign.ts';
import { converse, fill, oddText, requestBytes, statusesOf } from './http-bytes.ts';
import { expectStable, liveBytes } from './process-memory.ts';

const film = 'a film';
const sha256 = createHash('sha256').update(film).digest('hex');
const number = fc.oneof(
  fc.constantFrom(0, 1, 50, 99, 100, -1, 1.5, 2 ** 53, 1e300, -0),
  fc.integer(),
  fc.double({ noNaN: true }),
);
const text = fc.oneof(
  fc.constantFrom('fetch video', 'upload', 'mp4', 'video/mp4', sha256, '{job}/1/media.mp4', 'x'.repeat(700)),
  fc.string({ unit: 'binary', maxLength: 60 }),
);
const anything = fc.oneof(number, text, fc.constantFrom(null, true, [], {}), fc.jsonValue({ maxDepth: 3 }));
const members = <T extends Readonly<Record<string, fc.Arbitrary<unknown>>>>(model: T) =>
  fc.record({ ...model, __proto__: anything, more: anything }, { requiredKeys: [] });
const progress = members({ progress: number, stage: text, speed_bytes: anything, eta_seconds: anything });
const upload = members({
  bytes: number,
  sha256: text,
  content_type: text,
  ext: text,
  parts: fc.oneof(anything, fc.array(text)),
});
const delivered = fc.oneof(
  fc.constant({ ...someDelivered(1) }),
  members({ key: text, bytes: number, sha256: text, content_type: text }),
  anything,
);
const metadata = fc.oneof(
  fc.constant({ ...someMetadata }),
  members(Object.fromEntries(Object.keys(someMetadata).map((name) => [name, anything]))),
  anything,
);
const verdict = fc.oneof(
  members({
    is: fc.constantFrom('done', 'failed', 'interrupted'),
    metadata,
    delivered,
    code: fc.oneof(fc.constantFrom(...Object.keys(failures)), anything),
    text: anything,
    reason: anything,
  }),
  anything,
);
const bodies = fc.oneof(
  fc.oneof(progress, upload, verdict).map((json) => JSON.stringify(json) ?? ''),
  fc.constantFrom(film, '', '[', '{}{}', 'x'.repeat(66_000), '['.repeat(30_000)),
  oddText,
);
const routes = ['', '/progress', '/permit', '/object', '/verdict'].map((path) => `/v1/attempt${path}`);
const request = requestBytes({
  methods: ['POST', 'POST', 'POST', 'GET', 'PUT', 'HEAD', 'DELETE', 'CONNECT'],
  targets: fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom(...routes) },
    fc.constantFrom('/', '*', '/v1/attempt/', '/__proto__', 'http://a/v1/attempt'),
    oddText,
  ),
  headers: [
    ['Authorization', fc.constant('Bearer {token}')],
    ['Authorization', fc.oneof({ weight: 4, arbitrary: fc.constant('Bearer {token}') }, oddText)],
    ['Content-Type', fc.constantFrom('video/mp4', 'application/json', 'text/html')],
    ['x-sha256', fc.oneof(fc.constant(sha256), oddText)],
    ['x-ext', fc.oneof(fc.constantFrom('mp4', '../x'), oddText)],
    ['Content-Length', oddText],
  ],
  bodies,
});

/** Runs of one attempt, whose file cannot be replaced. */
const runsOfJob = 100;

/** Sends bytes to a worker gateway over its socket, with the token of a running attempt, for some time. */
export async function fuzzGateway(ms: number): Promise<Campaign> {
  const redis = await startTestRedis();
  const store = storeOf(redis.connection);
  const place = aFolder();
  const seal = makeSeal({ secret: Buffer.alloc(32, 7), old: null });
  const objects = await openFolder({ folder: place.folder, seal, now: Date.now });
  const { lines, log } = aLog();
  const attemptOf = async (token: string) => readToken(token, seal.verify);
  const limits = { maxFileBytes: 1000, inspectSeconds: 10, maxAttemptMs: 3_600_000 };
  const gateway = makeWorkerGateway({ store, objects, attemptOf, cookiesOf: async () => null, log, ...limits });
  const end = await openListener(gateway, { host: '127.0.0.1', port: 0 });
  const address = { host: '127.0.0.1', port: (gateway.address() as AddressInfo).port };
  const caller = await anAccount(store, { credits: 1_000_000, max_open: 100_000 });
  const anAttempt = async () => {
    const { id: job } = await aRunningJob(store, caller);
    return { job, token: makeToken({ jobId: job, attempt: 1 }, seal.sign) };
  };
  let runs = 0;
  let attempt = await anAttempt();
  const run = async (bytes: Buffer) => {
    if (++runs % runsOfJob === 0) attempt = await anAttempt();
    const said = await converse(address, fill(bytes, attempt));
    for (const status of statusesOf(said)) expect(status, said.slice(0, 500)).to.be.within(100, 499);
    expect(lines.filter((line) => line.includes('"level":"error"'))).to.deep.equal([]);
    lines.length = 0;
    const job = await theJob(store, attempt.job);
    expect(job.progress).to.be.within(0, 99);
    if (job.verdict !== null) expect(readVerdict(job.verdict), 'the verdict as it is kept').to.deep.equal(job.verdict);
  };
  try {
    await fuzz({ name: 'gateway', input: request, run }, ms / 10);
    const warm = liveBytes();
    const campaign = await fuzz({ name: 'gateway', input: request, run }, ms);
    expectStable(warm, liveBytes(), 'the gateway');
    return campaign;
  } finally {
    await end();
    await redis.stop();
    place.remove();
  }
}
