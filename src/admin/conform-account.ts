import { answered, type Check, check, hasShape, refused, same, skipRow, want } from './conform-check.ts';
import { type ConformClient, pick } from './conform-client.ts';

export const accountChecks: readonly Check[] = [
  check('usage-answer', 'The usage has every field, each of its type', async (ask) => {
    hasShape(answered(await ask.get('/v1/usage'), 200), 'Usage', 'the usage');
  }),
  check('D47', 'The balances of the usage add up', sums),
  check('D46', 'packs.current is the first pack that is not exhausted', async (ask) => {
    const packs = pick(answered(await ask.get('/v1/usage'), 200), 'packs');
    if (packs === null) skipRow('the account has no packs');
    const items = pick(packs, 'items') as unknown[];
    const first = items.findIndex((item) => pick(item, 'exhausted') !== true);
    same(pick(packs, 'current_index'), first < 0 ? items.length : first, 'current_index');
    same(pick(packs, 'current'), items[first] ?? null, 'current');
  }),
  check('D48', 'view=reduced answers plan and remaining, both as text', async (ask) => {
    const [full, reduced] = await Promise.all([ask.get('/v1/usage'), ask.get('/v1/usage', { view: 'reduced' })]);
    const plan = pick(answered(reduced, 200), 'plan');
    want(typeof plan === 'string', 'plan as text', plan);
    same(reduced.json, { plan, remaining: String(pick(full.json, 'remaining')) }, 'the body');
    refused(await ask.get('/v1/usage', { view: 'nonsense' }), 'bad_request', /^Bad Request: view must be /);
  }),
  check('stats-answer', 'The statistics have every field, and health follows from the rate', async (ask) => {
    for (const query of ['engine=video', 'path=/api/v1/audio/download', 'engine=media&path=/v1/media/metadata']) {
      const stats = answered(await readStats(ask, query), 200);
      hasShape(stats, 'Stats', 'the statistics');
      const rate = Number(pick(stats, 'success_rate'));
      same(
        pick(stats, 'health'),
        rate >= 90 ? 'operational' : rate >= 50 ? 'degraded' : 'down',
        `health at ${rate} %:`,
      );
    }
  }),
  check('D51', 'An unknown engine is 404; no or a wrong path is 400', async (ask) => {
    refused(await readStats(ask, 'engine=nonsense'), 'not_found');
    for (const query of ['', 'engine=', 'path=/v1/nonsense', 'engine=video&path=/v1/audio/download']) {
      refused(await readStats(ask, query), 'bad_request', /^Bad Request: /);
    }
  }),
];

async function readStats(ask: ConformClient, query: string) {
  const answer = await ask.get('/v1/stats', query);
  if (answer.headers.get('x-error-code') === 'forbidden') skipRow('the account may not read the statistics');
  return answer;
}

async function sums(ask: ConformClient): Promise<void> {
  const usage = answered(await ask.get('/v1/usage'), 200);
  const at = (path: string) => Number(pick(usage, path) ?? 0);
  same(at('remaining'), at('subscription.remaining') + at('credits.remaining'), 'remaining');
  same(at('total_used'), at('subscription.used') + at('credits.consumed'), 'total_used');
  same(at('credits.remaining'), Math.max(0, at('credits.given') - at('credits.consumed')), 'credits.remaining');
  want(at('packs.remaining') <= at('subscription.remaining'), 'subscription.remaining to hold the packs', usage);
  const used = at('subscription.total') === 0 ? 0 : (at('subscription.used') * 100) / at('subscription.total');
  same(at('subscription.percent_used'), Math.min(100, Math.round(used * 100) / 100), 'subscription.percent_used');
}
