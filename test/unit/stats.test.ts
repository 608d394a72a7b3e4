import { expect } from 'chai';
import fc from 'fast-check';
import { endpointsOfEngines, healthOf, judgeStats, type MinuteBucket } from '../../src/model/stats.ts';

describe('judgeStats', () => {
  const accepted: [engine: string | undefined, path: string | undefined, about: [string, string | null]][] = [
    ['video', undefined, ['video', null]],
    ['audio', undefined, ['audio', null]],
    ['media', undefined, ['media', null]],
    ['video', '/v1/video/download', ['video', '/v1/video/download']],
    ['media', '/api/v1/media/metadata', ['media', '/v1/media/metadata']],
    [undefined, '/v1/audio/download', ['audio', '/v1/audio/download']],
    [undefined, '/api/v1/video/download', ['video', '/v1/video/download']],
  ];
  for (const [engine, path, about] of accepted) {
    it(`D51: takes engine ${engine} and path ${path} as ${about}`, () =>
      expect(judgeStats(engine, path)).to.deep.equal({ ok: true, engine: about[0], path: about[1] }));
  }

  const all = '/v1/video/download, /v1/audio/download, /v1/media/metadata';
  const refused: [engine: string | undefined, path: string | undefined, sentence: string][] = [
    [undefined, undefined, 'engine or path is required'],
    ['', undefined, 'engine must be one of video, audio, media'],
    ['', '/v1/video/download', 'engine must be one of video, audio, media'],
    [undefined, '', `path must be one of ${all}`],
    [undefined, '/v1/usage', `path must be one of ${all}`],
    [undefined, 'x', `path must be one of ${all}`],
    [undefined, '__proto__', `path must be one of ${all}`],
    [undefined, '/v1/video/download/../x', `path must be one of ${all}`],
    [undefined, '/api/api/v1/video/download', `path must be one of ${all}`],
    [undefined, 'api/v1/video/download', `path must be one of ${all}`],
    [undefined, '/apiv1/video/download', `path must be one of ${all}`],
    [undefined, '/api', `path must be one of ${all}`],
    [undefined, '/api/v1/usage', `path must be one of ${all}`],
    [undefined, '/v1/api/video/download', `path must be one of ${all}`],
    ['video', '', 'path must be /v1/video/download'],
    ['video', '/v1/audio/download', 'path must be /v1/video/download'],
    ['media', '/v1/nothing', 'path must be /v1/media/metadata'],
  ];
  for (const [engine, path, rest] of refused) {
    it(`refuses engine ${engine} and path ${path}: ${rest}`, () =>
      expect(judgeStats(engine, path)).to.deep.equal({
        ok: false,
        code: 'bad_request',
        sentence: `Bad Request: ${rest}`,
      }));
  }

  for (const engine of ['nope', 'VIDEO', ' video', '__proto__', 'constructor', 'toString', 'jobs', 'usage']) {
    it(`knows no engine ${engine}`, () =>
      expect(judgeStats(engine, '/v1/nothing')).to.deep.equal({ ok: false, code: 'not_found', sentence: 'Not Found' }));
  }
});

describe('the endpoint whose calls are the health of an engine', () => {
  for (const [engine, endpoint] of [
    ['video', 'video'],
    ['audio', 'audio'],
    ['media', 'metadata'],
  ] as const) {
    it(`is ${endpoint} for ${engine}`, () => expect(endpointsOfEngines[engine]).to.equal(endpoint));
  }
});

const now = Date.UTC(2026, 10, 20, 12, 0, 30);
const minute = now / 60_000 - 0.5;

function bucket(over: Partial<MinuteBucket>): MinuteBucket {
  return { minute, count: 0, good: 0, timed: 0, milliseconds: 0, runs: 0, runMs: 0, ...over };
}

describe('the health snapshot', () => {
  it('has exactly the fields of the contract', () => {
    const seen = healthOf('video', null, [bucket({ count: 2, good: 2, timed: 2, milliseconds: 301 })], now);
    expect(seen).to.deep.equal({
      engine: 'video',
      path: null,
      health: 'operational',
      success_rate: 100,
      avg_response_time_ms: 151,
      window: '1h',
    });
  });

  it('names the path of the request', () =>
    expect(healthOf('audio', '/v1/audio/download', [], now).path).to.equal('/v1/audio/download'));

  const rates: [count: number, failed: number, rate: number, health: string][] = [
    [0, 0, 100, 'operational'],
    [1, 1, 95, 'operational'],
    [2, 2, 90, 'operational'],
    [3, 3, 85, 'degraded'],
    [10, 10, 50, 'degraded'],
    [11, 11, 45, 'down'],
    [19, 1, 95, 'operational'],
    [20, 1, 95, 'operational'],
    [20, 2, 90, 'operational'],
    [20, 3, 85, 'degraded'],
    [20, 20, 0, 'down'],
    [30, 1, 96.7, 'operational'],
    [1000, 101, 89.9, 'degraded'],
    [1000, 501, 49.9, 'down'],
    [100000, 1, 100, 'operational'],
    // The rate that is shown decides: 89.96 is shown as 90.
    [10000, 1004, 90, 'operational'],
  ];
  for (const [count, failed, rate, health] of rates) {
    it(`stats-health: shows ${failed} failures of ${count} as ${rate}, ${health}`, () => {
      const seen = healthOf('video', null, [bucket({ count, good: count - failed })], now);
      expect([seen.success_rate, seen.health]).to.deep.equal([rate, health]);
    });
  }

  const times: [what: string, buckets: Partial<MinuteBucket>[], average: number][] = [
    ['0 without a timed call', [{ count: 3, good: 3 }], 0],
    [
      'the mean over all buckets',
      [
        { timed: 1, milliseconds: 100 },
        { timed: 3, milliseconds: 700 },
      ],
      200,
    ],
    ['a whole number', [{ timed: 3, milliseconds: 100 }], 33],
  ];
  for (const [what, buckets, average] of times) {
    it(`shows as average ${what}`, () =>
      expect(healthOf('video', null, buckets.map(bucket), now).avg_response_time_ms).to.equal(average));
  }

  it('counts this minute and the 59 before it', () => {
    const failed = { count: 1, good: 0, timed: 1, milliseconds: 10 };
    const seen = (age: number) => healthOf('video', null, [bucket({ ...failed, minute: minute - age })], now);
    expect([0, 59].map((age) => seen(age).success_rate)).to.deep.equal([95, 95]);
    expect([60, 61, 1000].map((age) => seen(age).success_rate)).to.deep.equal([100, 100, 100]);
    expect([59, 60].map((age) => seen(age).avg_response_time_ms)).to.deep.equal([10, 0]);
  });

  it('shows a rate from 0 to 100 that fits its health, for any hour', () => {
    const buckets = fc.array(
      fc.record({
        minute: fc.integer({ min: minute - 70, max: minute }),
        count: fc.nat(1000),
        failed: fc.nat(1000),
        timed: fc.nat(1000),
        milliseconds: fc.nat(60_000_000),
      }),
    );
    fc.assert(
      fc.property(buckets, (made) => {
        const hour = made.map(({ failed, ...rest }) =>
          bucket({ ...rest, good: rest.count - Math.min(failed, rest.count) }),
        );
        const { success_rate: rate, health, avg_response_time_ms: average } = healthOf('video', null, hour, now);
        expect(rate).to.be.within(0, 100);
        expect(rate).to.equal(Number(rate.toFixed(1)));
        expect(average).to.satisfy(Number.isSafeInteger);
        expect(health).to.equal(rate >= 90 ? 'operational' : rate >= 50 ? 'degraded' : 'down');
      }),
    );
  });
});
