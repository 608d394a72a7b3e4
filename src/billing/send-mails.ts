import { backoffMs } from '../base/backoff.ts';
import { startPeriodicTask } from '../base/periodic-task.ts';
import type { Seal } from '../base/seal.ts';
import { mailedLinkPurpose } from '../model/person.ts';
import { type EndedPurchase, invoiceNumber } from '../model/purchase.ts';
import { readAccount } from '../store/accounts/read-accounts.ts';
import { endMail } from '../store/mail/end-mail.ts';
import { dueMails, type Mail, takeMail } from '../store/mail/take-mail.ts';
import { readPurchase } from '../store/money/read-purchases.ts';
import { listPeople } from '../store/people/read-people.ts';
import type { RecordStore } from '../store/script.ts';
import { reportUpkeep, type UpkeepParts } from '../store/upkeep-parts.ts';
import { messageIdOf, writeLetter } from './letters.ts';
import type { SendLetter } from './mailer.ts';

interface MailOptions extends UpkeepParts {
  readonly send: SendLetter;
  /** Opens the secrets of sign-in links. */
  readonly seal: Pick<Seal, 'open'>;
  readonly from: string;
  readonly dashboardUrl: string;
  readonly intervalMs?: number;
}

const defaultIntervalMs = 2_000;
const leaseMs = 120_000;
const firstMs = 30_000;
const maxMs = 6 * 3_600_000;

/** Sends the mails of the outbox to the owners of their accounts, to the operators, or to the person whom they name, one mail each. A server that is away delays them for up to a week. */
export function startMails(options: MailOptions) {
  const { store, metrics, log, intervalMs = defaultIntervalMs } = options;
  const poll = async (isClosing: () => boolean) => {
    for (const id of await dueMails(store)) {
      if (isClosing()) return;
      const mail = await takeMail(store, id, leaseMs);
      if (mail === 'given_up') {
        metrics.mails_total.inc({ outcome: 'given_up' });
        log.warn('a mail is given up: it is damaged, or more than a week old', { mail: id });
      } else if (mail !== null) await sendMail(options, mail);
    }
  };
  const failed = reportUpkeep(options, 'mail', 'mails could not be sent: they are tried again');
  return startPeriodicTask(poll, intervalMs, failed);
}

async function sendMail(options: MailOptions, mail: Mail): Promise<void> {
  const { store, send, seal, from, dashboardUrl, metrics, log } = options;
  const account = mail.account === '' ? { name: 'trawl', slug: '' } : await readAccount(store, mail.account);
  const purchase = 'purchase' in mail ? await readPurchase(store, mail.account, mail.purchase) : null;
  const secret = 'sealed' in mail ? seal.open(mailedLinkPurpose, mail.sealed) : null;
  const letter = writeLetter(mail, { account, purchase, secret, dashboardUrl });
  const readers = await readersOf(store, mail);
  const attachments = mail.kind === 'invoice' && purchase !== null ? [await attachedInvoice(purchase)] : [];
  const done = new Set(mail.done?.split(' ').filter(Boolean));
  let isLeft = false;
  for (const to of letter === null ? [] : readers) {
    if (done.has(to) || letter === null) continue;
    try {
      const outcome = await send({ to, ...letter, attachments, messageId: messageIdOf(mail, to, from) });
      metrics.mails_total.inc({ outcome });
      if (outcome === 'refused')
        log.warn('the mail server refuses an address', { account: mail.account, mail: mail.id });
      done.add(to);
    } catch (error) {
      isLeft = true;
      metrics.mails_total.inc({ outcome: 'delayed' });
      log.warn('a mail could not be sent: it is tried again', { account: mail.account, mail: mail.id, error });
    }
  }
  const gapMs = isLeft ? backoffMs(mail.attempts, { firstMs, maxMs }) : null;
  await endMail(store, mail, [...done], gapMs);
}

async function readersOf(store: RecordStore, mail: Mail): Promise<string[]> {
  if ('to' in mail) return [mail.to];
  const isForOperators = mail.kind === 'reversed' || mail.kind === 'unbooked';
  const people = await listPeople(store, isForOperators ? '' : mail.account);
  const readerRole = isForOperators ? 'operator' : 'owner';
  return people.flatMap(({ email, role }) => (role === readerRole ? [email] : []));
}

/** The library that writes PDF is loaded with the first invoice. */
async function attachedInvoice(purchase: EndedPurchase) {
  const { writeInvoicePdf } = await import('./invoice-pdf.ts');
  const filename = `${invoiceNumber(purchase.invoice ?? 0)}.pdf`;
  return { filename, content: await writeInvoicePdf(purchase), contentType: 'application/pdf' };
}
