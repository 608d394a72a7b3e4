import { makeMetrics } from '../../src/base/metrics.ts';
import { startPurchases } from '../../src/billing/buy-due.ts';
import { openStripe } from '../../src/billing/stripe-provider.ts';
import { connect } from '../../src/store/redis/connection.ts';
import { aLog, maxOpenMs } from './redis.ts';
import { seller } from './topups.ts';

/** The purchases of a controller in a process of its own, so that it can be killed: `REDIS STRIPE`. Says `ready`. */
const [redis = '', stripe = ''] = process.argv.slice(2);
const { log } = aLog();
const connection = await connect(redis, { log, openMs: maxOpenMs });
const store = { connection, clock: { now: () => Date.now(), offset: () => 0 } };
const provider = openStripe({ key: () => 'sk_test_1', url: stripe, now: Date.now });
startPurchases({ store, provider, seller, metrics: makeMetrics(), log, intervalMs: 5, leaseMs: 200 });
console.log('ready');
