import { randomUUID } from 'node:crypto';
import type { ReceiverTest } from '../../model/receiver-test.ts';
import { channels, keys } from '../keys.ts';
import { type RecordStore, text } from '../script.ts';

/** A test that a person asked for; `authorization` is sealed, '' without one. */
export interface AskedTest {
  readonly account: string;
  readonly url: string;
  readonly authorization: string;
}

/** A test and the sealed signing secret of its account, '' without one. */
export interface TakenTest extends AskedTest {
  readonly secret: string;
}

/** Time in which a controller must take a test. */
const maxWaitMs = 15_000;
/** Time for which its result is kept, from when it was taken: longer than `maxWaitMs`, so that no test is taken twice. */
const keptMs = 300_000;

/** Asks the controllers to send a test once; returns its id. */
export async function askForTest({ connection }: RecordStore, test: AskedTest): Promise<string> {
  const id = randomUUID();
  await connection.send(['SET', keys.receiverTest(id), JSON.stringify(test), 'PX', String(maxWaitMs)]);
  await connection.send(['PUBLISH', channels.receiverTests, id]);
  return id;
}

/** Claims a test before it is sent; `null` when another controller has it, or its time is over. */
export async function takeTest({ connection }: RecordStore, id: string): Promise<TakenTest | null> {
  const asked = await connection.read(['GET', keys.receiverTest(id)]);
  if (asked === null) return null;
  const test: AskedTest = JSON.parse(text(asked));
  const claim = writeResult(test.account, { state: 'sending' });
  const word = await connection.send(['SET', keys.receiverTestResult(id), claim, 'NX', 'PX', String(keptMs)]);
  if (text(word) !== 'OK') return null;
  return { ...test, secret: text(await connection.read(['HGET', keys.account(test.account), 'webhook_secret'])) };
}

export async function endTest({ connection }: RecordStore, id: string, of: string, ended: ReceiverTest): Promise<void> {
  await connection.send(['SET', keys.receiverTestResult(id), writeResult(of, ended), 'PX', String(keptMs)]);
}

/** Returns a test of the account, or `null` when none is known; asks the controllers again while none has taken it: a hint may be lost. */
export async function readTest({ connection }: RecordStore, of: string, id: string): Promise<ReceiverTest | null> {
  const [asked, result] = await connection.readAll([
    ['GET', keys.receiverTest(id)],
    ['GET', keys.receiverTestResult(id)],
  ]);
  const known = result ?? asked;
  if (known === null || JSON.parse(text(known)).account !== of) return null;
  if (result !== null) return JSON.parse(text(result)).test;
  await connection.send(['PUBLISH', channels.receiverTests, id]);
  return { state: 'waiting' };
}

function writeResult(account: string, test: ReceiverTest): string {
  return JSON.stringify({ account, test });
}
