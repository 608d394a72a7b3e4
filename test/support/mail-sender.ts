import { randomBytes } from 'node:crypto';
import { makeMetrics } from '../../src/base/metrics.ts';
import { makeSeal, type Seal } from '../../src/base/seal.ts';
import { openSmtp } from '../../src/billing/mailer.ts';
import { startMails } from '../../src/billing/send-mails.ts';
import { eachWithEmptyRecord } from './empty-record.ts';
import { type Mailbox, startMailbox } from './mailbox.ts';
import { holder, lead, type TestStore } from './record.ts';
import { aLog } from './redis.ts';

/** Sends the mails of a record to a mailbox of the test. */
export interface MailSender {
  readonly box: Mailbox;
  readonly seal: Seal;
  readonly metrics: ReturnType<typeof makeMetrics>;
  /** Of its log. */
  readonly lines: readonly string[];
  readonly dashboardUrl: string;
  /** Sends what is due, to the server of this URL where another one is named. */
  send(url?: string): Promise<void>;
}

/** Passes a mail sender of a record to each test of a block. */
export function eachWithMailSender(storeOf: () => TestStore, take: (sender: MailSender) => void): void {
  const from = 'Trawl <billing@trawl.example>';
  const dashboardUrl = 'https://trawl.example';
  const seal = makeSeal({ secret: randomBytes(32) });
  let box: Mailbox;
  beforeEach(async () => {
    box = await startMailbox();
    const [metrics, { lines, log }] = [makeMetrics(), aLog()];
    const send = async (url = box.url) => {
      const mails = startMails({
        ...{ store: storeOf(), seal, send: openSmtp({ url: () => url, from }), from, dashboardUrl },
        ...{ metrics, log, intervalMs: 60_000 },
      });
      await mails.wake();
      await mails.close();
    };
    take({ box, seal, metrics, lines, dashboardUrl, send });
  });
  afterEach(() => box.stop());
}

/** Passes an empty record that the tests lead, and its mail sender, to each test of a block. */
export function eachWithMailedRecord(take: (store: TestStore, sender: MailSender) => void): void {
  let store: TestStore;
  eachWithEmptyRecord((made) => {
    store = made;
  });
  beforeEach(() => lead(store, holder));
  eachWithMailSender(
    () => store,
    (sender) => take(store, sender),
  );
}
