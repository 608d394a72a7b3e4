import type { ReceiverTest } from '../../model/receiver-test.ts';
import { channels, keys } from '../keys.ts';
import { number, type RecordStore, run, script, text } from '../script.ts';

/** A test that a person asked for; `authorization` is sealed, '' without one. */
interface AskedTest {
  readonly id: string;
  readonly account: string;
  readonly url: string;
  readonly authorization: string;
}

/** A test and the sealed signing secret of its account, '' without one. */
export interface TakenTest extends AskedTest {
  readonly secret: string;
}

/** Tests that an account may ask for within `windowMs`, a minute, so that no one floods a host with posts of ours. */
export const maxTestsPerMinute = 10;
const windowMs = 60_000;
/** Time in which a controller must take a test. */
const maxWaitMs = 15_000;
/** Time for which its result is kept, from when it was taken: longer than `maxWaitMs`, so that no test is taken twice. */
const keptMs = 300_000;

/**
 * Leaves a test for the controllers and hints at it, while its account has asked for fewer than `max` in the window that the first of
 * them began. Answers {'asked'} or {'limited', milliseconds until the window ends}.
 */
const askForTestScript = script(
  'ask-for-test',
  'needs memory',
  ['receiverTest', 'receiverTestsAsked'],
  ['testId', 'test', 'max', 'window', 'kept', 'receiverTestsChannel'],
)`
local asked = tonumber(redis.call('GET', receiverTestsAsked) or 0)
if asked >= tonumber(max) then return { 'limited', redis.call('PTTL', receiverTestsAsked) } end
undos[1] = function() redis.pcall('DEL', receiverTest) end
redis.call('SET', receiverTest, test, 'PX', kept)
if asked == 0 then redis.call('SET', receiverTestsAsked, '1', 'PX', window)
else redis.call('SET', receiverTestsAsked, asked + 1, 'KEEPTTL') end
redis.call('PUBLISH', receiverTestsChannel, testId)
return { 'asked' }
`;

/** Claims a test before it is sent. Answers {'taken', its JSON, sealed signing secret of the account} or {'gone'}. */
const takeTestScript = script(
  'take-test',
  'light',
  ['receiverTest', 'receiverTestResult', 'account'],
  ['claim', 'kept'],
)`
local test = redis.call('GET', receiverTest)
if not test or not redis.call('SET', receiverTestResult, claim, 'NX', 'PX', kept) then return { 'gone' } end
return { 'taken', test, redis.call('HGET', account, 'webhook_secret') or '' }
`;

/** Answers {'ended'}. */
const endTestScript = script('end-test', 'light', ['receiverTestResult'], ['result', 'kept'])`
redis.call('SET', receiverTestResult, result, 'PX', kept)
return { 'ended' }
`;

/** Asks the controllers to send a test once; returns for how many milliseconds the account may ask for none, or `null` when it is asked. */
export async function askForTest(store: RecordStore, test: AskedTest): Promise<number | null> {
  const reply = await run(store, askForTestScript, {
    ...{ testId: testIdOf(test.account, test.id), accountId: test.account, test: JSON.stringify(test) },
    ...{ max: maxTestsPerMinute, window: windowMs, kept: maxWaitMs },
  });
  return reply[0] === 'limited' ? number(reply[1]) : null;
}

/** Claims a test before it is sent; `null` when another controller has it, or its time is over. */
export async function takeTest(store: RecordStore, testId: string): Promise<TakenTest | null> {
  const claim = JSON.stringify({ state: 'sending' } satisfies ReceiverTest);
  const reply = await run(store, takeTestScript, { testId, accountId: accountOfTest(testId), claim, kept: keptMs });
  return reply[0] === 'taken' ? { ...(JSON.parse(text(reply[1])) as AskedTest), secret: text(reply[2]) } : null;
}

export async function endTest(store: RecordStore, testId: string, ended: ReceiverTest): Promise<void> {
  await run(store, endTestScript, { testId, result: JSON.stringify(ended), kept: keptMs });
}

/** Returns a test of the account, or `null` when none is known; asks the controllers again while none has taken it: a hint may be lost. */
export async function readTest({ connection }: RecordStore, of: string, id: string): Promise<ReceiverTest | null> {
  const testId = testIdOf(of, id);
  const [asked, result] = await connection.readAll([
    ['GET', keys.receiverTest(testId)],
    ['GET', keys.receiverTestResult(testId)],
  ]);
  if (result !== null) return JSON.parse(text(result));
  if (asked === null) return null;
  await connection.send(['PUBLISH', channels.receiverTests, testId]);
  return { state: 'waiting' };
}

/** Returns the id of a test in the record: nobody finds a test of another account. */
function testIdOf(accountId: string, id: string): string {
  return `${accountId}/${id}`;
}

export function accountOfTest(testId: string): string {
  return testId.slice(0, testId.indexOf('/'));
}
