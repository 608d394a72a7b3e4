import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { makeSeal } from '../../src/base/seal.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { creditPaths, film } from '../support/calls.ts';

const [former, present] = [randomBytes(32), randomBytes(32)];
/** The settings of each step of docs/operate.md, in their order; the one before and the one after run side by side. */
const steps = [
  { secret: former, old: null },
  { secret: former, old: [former, present] },
  { secret: present, old: [former, present] },
  { secret: present, old: null },
];

describe('a new TRAWL_SECRET, step by step', () => {
  const apis: TestApi[] = [];
  let caller: ApiCaller;
  before(async () => {
    for (const step of steps) {
      const seal = makeSeal(step);
      apis.push(
        await startApi({}, (parts) => {
          const first = apis[0];
          return { ...parts, seal, ...(first && { store: first.store, objects: first.objects }) };
        }),
      );
    }
    caller = await apis[0]!.addCaller({ credits: 100 });
  });
  after(async () => {
    for (const api of apis.toReversed()) await api.stop();
  });

  for (const [earlier, later] of [
    [0, 1],
    [1, 2],
    [2, 3],
  ] as const) {
    for (const [one, other] of [
      [earlier, later],
      [later, earlier],
    ] as const) {
      it(`D12: a call admitted in step ${one} is answered again in step ${other}`, async () => {
        for (const path of creditPaths) {
          const headers = { 'idempotency-key': `${one} ${other} ${path}` };
          const options = { key: caller.key, params: { query: film }, headers };
          const first = await apis[one]!.call('GET', path, options);
          expect(first.status, first.text).to.be.oneOf([200, 202]);
          const again = await apis[other]!.call('GET', path, options);
          expect([again.status, again.json], again.text).to.deep.equal([first.status, first.json]);
          const different = { ...options, params: { query: `${film}?other` } };
          expect((await apis[other]!.call('GET', path, different)).status).to.equal(409);
        }
        const batch = { endpoint: 'audio', items: [{ query: film }] };
        const options = { key: caller.key, body: batch, headers: { 'idempotency-key': `batch ${one} ${other}` } };
        const first = await apis[one]!.call('POST', '/v1/batches', options);
        expect((await apis[other]!.call('POST', '/v1/batches', options)).json).to.deep.equal(first.json);
      });

      it(`links and sealed texts made in step ${one} hold in step ${other}`, () => {
        const [maker, reader] = [makeSeal(steps[one]!), makeSeal(steps[other]!)];
        expect(reader.verify('link', 'a', maker.sign('link', 'a'))).to.equal(true);
        expect(reader.open('webhook', maker.seal('webhook', 'Bearer x'))).to.equal('Bearer x');
      });
    }
  }
});
