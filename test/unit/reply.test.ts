import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { acceptedReply, errorReply, failureReply, requireAllowed, sendReply, softened } from '../../src/api/reply.ts';
import { failures, Refusal, refusals, refuse } from '../../src/base/errors.ts';
import { until } from '../support/until.ts';

describe('replies of the API', () => {
  it('an error that is no refusal is an internal error', () => {
    const { status, body, headers } = errorReply(new Error('secret'));
    expect({ status, body, headers }).to.deep.equal({
      ...{ status: 500, body: { error: refusals.internal_error.sentence } },
      headers: { 'x-error-code': 'internal_error' },
    });
  });

  it('a reached key quota has the status of the setting, and says when to come back', () => {
    const reached = refuse('key_quota_exceeded', 'reached', 7);
    expect(errorReply(reached).status).to.equal(401);
    expect(errorReply(reached, 429)).to.deep.include({
      ...{ status: 429, body: { error: 'reached' } },
      headers: { 'x-error-code': 'key_quota_exceeded', 'retry-after': '7' },
    });
    expect(errorReply(refuse('forbidden'), 429).status).to.equal(403);
  });

  it('a 503 without a time says to come back after two seconds', () => {
    expect(errorReply(refuse('unavailable')).headers).to.include({ 'retry-after': '2' });
  });

  for (const [code, status, text] of [
    ['deleted', 404, failures.deleted.sentence],
    ['private', 400, `Bad Request: query cannot be used: ${failures.private.sentence}`],
    ['extractor_failed', 500, failures.extractor_failed.sentence],
  ] as const) {
    it(`synchronous metadata that fails as ${code} is ${status} with its sentence`, () => {
      expect(failureReply(code, null)).to.deep.include({ status, body: { error: text } });
      expect(failureReply(code, 'Own.').body).to.deep.equal({ error: text.replace(failures[code].sentence, 'Own.') });
    });
  }

  it('soft_fail shows 200 and keeps body, code and status in a header', () => {
    const hard = errorReply(refuse('forbidden'));
    expect(softened(hard)).to.deep.equal({
      ...{ status: 200, body: hard.body },
      headers: { 'x-error-code': 'forbidden', 'x-original-status': '403' },
    });
  });

  for (const [kind, answer, location, held] of [
    ['job', { admitted: 'J1', held: 1 }, '/v1/jobs/J1', { 'x-credits-held': '1' }],
    ['batch', { admitted: 'B1', held: 40 }, '/v1/batches/B1', { 'x-credits-held': '40' }],
    ['job', { repeated: 'J1' }, '/v1/jobs/J1', {}],
  ] as const) {
    it(`a ${kind} that was ${Object.keys(answer)[0]} has its id, its place and the credits that it newly holds`, () => {
      const { headers, ...reply } = acceptedReply(kind, { asyncStatus: 200, basePath: '' }, answer);
      expect(reply).to.deep.equal({
        ...{ status: 200, loggedStatus: 202 },
        body: { [`${kind}_id`]: kind === 'job' ? 'J1' : 'B1' },
      });
      expect(headers).to.deep.equal({ location, ...held });
    });
  }

  for (const [what, waits] of [
    ['that closes its connection is written at once and ended later', true],
    ['is written and ended at once', false],
  ] as const) {
    it(`an answer ${what}`, async () => {
      const closing = Promise.withResolvers<void>();
      const answers: ServerResponse[] = [];
      const server = createServer((_req, res) => {
        const reply = { status: 418, body: { a: 'ü' }, headers: { 'x-b': 'c' } };
        sendReply(res, reply, { 'x-d': 'e' }, waits ? closing.promise : undefined);
        answers.push(res);
      }).listen(0, '127.0.0.1');
      try {
        await once(server, 'listening');
        const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
        const named = ['content-type', 'content-length', 'x-b', 'x-d'].map((name) => response.headers.get(name));
        expect([response.status, ...named]).to.deep.equal([418, 'application/json; charset=utf-8', '10', 'c', 'e']);
        expect(await response.json()).to.deep.equal({ a: 'ü' });
        expect(answers.map(({ writableEnded }) => writableEnded)).to.deep.equal([!waits]);
        closing.resolve();
        await until(() => answers[0]?.writableEnded, 5, 'the end of the answer');
      } finally {
        server.closeAllConnections();
        server.close();
      }
    });
  }

  it('an answer of the record sets the RateLimit headers of the windows that the plan has', () => {
    const headers = {};
    const both = { perSecond: { limit: 5, left: 4 }, perMinute: { limit: 60, left: 9 } };
    expect(requireAllowed({ headers }, { rates: both, found: 1 }).found).to.equal(1);
    requireAllowed({ headers }, { rates: { perSecond: null, perMinute: null } });
    expect(headers).to.deep.equal({
      'ratelimit-policy': '"per-second";q=5;w=1, "per-minute";q=60;w=60',
      ratelimit: '"per-second";r=4;t=1, "per-minute";r=9;t=60',
    });
  });

  it('a repeat of a call that still runs is told to wait, and one of another call is not', () => {
    const none = {
      refused: 'idempotency_conflict',
      retryAfterSeconds: null,
      rates: { perSecond: null, perMinute: null },
    } as const;
    expect(() => requireAllowed({ headers: {} }, { ...none, detail: 'running' }))
      .to.throw(Refusal)
      .that.includes({ retryAfterSeconds: 2 });
    expect(() => requireAllowed({ headers: {} }, { ...none, detail: 'request' }))
      .to.throw(Refusal)
      .with.property('retryAfterSeconds', undefined);
  });

  for (const [refused, detail, sentence] of [
    ['key_quota_exceeded', 'quota daily', `${refusals.key_quota_exceeded.sentence} quota daily`],
    ['rate_limited', 'per-minute', 'You have exceeded the per-minute rate limit on your subscription'],
    ['idempotency_conflict', 'running', 'The first request with this Idempotency-Key is still running'],
    ['idempotency_conflict', 'request', 'This Idempotency-Key was used with other parameters'],
    ['payment_required', '', refusals.payment_required.sentence],
    ['bad_request', '', 'Bad Request: query'],
  ] as const) {
    it(`the record's refusal ${refused} ${detail} is thrown with its sentence`, () => {
      const answer = { refused, detail, retryAfterSeconds: 3, rates: { perSecond: null, perMinute: null } };
      expect(() => requireAllowed({ headers: {} }, answer, 'Bad Request: query'))
        .to.throw(Refusal, sentence)
        .that.includes({ code: refused, retryAfterSeconds: 3, message: sentence });
    });
  }
});
