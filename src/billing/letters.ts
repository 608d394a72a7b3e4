import { hash } from 'node:crypto';
import { escapeHtml } from '../base/escape-html.ts';
import { signInLinkMs, signInUrl } from '../model/person.ts';
import { type EndedPurchase, invoiceNumber, writePrice } from '../model/purchase.ts';
import { writeTime } from '../model/timestamp.ts';
import type { Mail, MailedLink } from '../store/mail/take-mail.ts';
import { invoiceRows } from './invoice.ts';
import type { Letter } from './mailer.ts';

/** Parts of a mail as a person reads them. */
interface Page {
  readonly subject: string;
  readonly lines: readonly string[];
  /** Rows of a table behind the lines. */
  readonly rows?: readonly (readonly [name: string, value: string])[];
  /** Link at the end, where it is not that of the page Billing. */
  readonly url?: string;
}

interface Reader {
  readonly account: { readonly name: string; readonly slug: string };
  /** Of a mail about a purchase. */
  readonly purchase: EndedPurchase | null;
  /** Secret of the sign-in link that the mail brings. */
  readonly secret: string | null;
  readonly dashboardUrl: string;
}

/** Returns subject, text and HTML of a mail; both say the same. `null` when what it tells of is not there. */
export function writeLetter(mail: Mail, reader: Reader): Omit<Letter, 'to' | 'messageId'> | null {
  const page = pageOf(mail, reader);
  if (page === null) return null;
  const { subject, lines, rows = [], url: more = `${reader.dashboardUrl}/billing` } = page;
  const table = rows.map(([name, value]) => `${`${name}:`.padEnd(16)}${value.replaceAll('\n', `\n${' '.repeat(16)}`)}`);
  const cells = rows.map(([name, value]) => `<tr><th>${escapeHtml(name)}</th><td>${escapeHtml(value)}</td></tr>`);
  return {
    subject,
    text: [...lines, ...(table.length > 0 ? ['', ...table] : []), '', more, ''].join('\n'),
    html: `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escapeHtml(subject)}</title>
<style>body{font:16px/1.5 sans-serif;max-width:36em;margin:1em auto;padding:0 1em}th{text-align:left;vertical-align:top;padding-right:1em}td{white-space:pre-line}</style>
${lines.map((line) => `<p>${escapeHtml(line)}</p>`).join('\n')}
${cells.length > 0 ? `<table>${cells.join('\n')}</table>` : ''}
<p><a href="${escapeHtml(more)}">${escapeHtml(more)}</a></p></html>
`,
  };
}

/** The same for every attempt at one address. */
export function messageIdOf(mail: Pick<Mail, 'id' | 'at'>, to: string, from: string): string {
  const domain = /@([^\s>]+)>?$/.exec(from)?.[1] ?? 'localhost';
  return `<${hash('sha256', `${mail.id} ${mail.at} ${to}`).slice(0, 32)}@${domain}>`;
}

function pageOf(mail: Mail, reader: Reader): Page | null {
  const { name } = reader.account;
  const { purchase } = reader;
  if (mail.kind === 'invitation' || mail.kind === 'link') return linkPage(mail, reader);
  if (mail.kind === 'alert') return alertPage(mail, name);
  if (mail.kind === 'webhooks') return webhooksPage(mail, reader);
  if (mail.kind === 'card') return cardPage(mail, name);
  if (mail.kind === 'key') return keyPage(mail, reader);
  if (mail.kind === 'unbooked') return unbookedPage(mail);
  if (mail.kind === 'cap') {
    const [price, cap] = [writePrice(mail.price_cents, mail.currency), writePrice(mail.cap_cents, mail.currency)];
    return {
      subject: `Automatic top-up of ${name} has reached its monthly cap`,
      lines: [
        `The balance of ${name} fell below the threshold of its automatic top-up. Another pack of ${price} would pass the monthly cap of ${cap}, so nothing was bought.`,
        'The top-up stays enabled and goes on next month. You can raise the cap or buy a pack yourself.',
      ],
    };
  }
  if (purchase === null) return null;
  if (mail.kind === 'reversed') return reversedPage(mail, purchase, reader.account);
  const price = writePrice(purchase.price_cents, purchase.currency);
  if (mail.kind === 'decline') {
    return {
      subject: `Automatic top-up of ${name} was declined and is now disabled`,
      lines: [
        `${price} for "${purchase.pack_title}" could not be charged: ${purchase.reason || 'the payment was declined.'}`,
        'Nothing was bought, and the automatic top-up is disabled. Check the payment method, then enable it again.',
      ],
    };
  }
  return {
    subject: `Invoice ${invoiceNumber(purchase.invoice ?? 0)}: ${purchase.pack_title}, ${price}`,
    lines: [
      purchase.state === 'paid'
        ? `Thank you. ${purchase.pack_total} credits were added to ${name} and are paid.`
        : `${purchase.pack_total} credits were added to ${name}. Their payment was ${purchase.state} since, and what was left of them has lapsed.`,
    ],
    rows: invoiceRows(purchase),
  };
}

function reversedPage(
  { lapsed }: Mail & { readonly kind: 'reversed' },
  purchase: EndedPurchase,
  { name, slug }: Reader['account'],
): Page {
  const price = writePrice(purchase.price_cents, purchase.currency);
  const isDisputed = purchase.state === 'disputed';
  return {
    subject: `A payment of ${name} was ${isDisputed ? 'disputed' : 'refunded'}: ${price}`,
    lines: [
      isDisputed
        ? `The payment of ${price} by ${name} for "${purchase.pack_title}" is disputed. Answer the dispute at the payment provider before its deadline.`
        : `The payment of ${price} by ${name} for "${purchase.pack_title}" was refunded in full.`,
      purchase.invoice === undefined ? 'Its pack was never added.' : lapsedLine(lapsed, purchase.pack_total),
      ...(isDisputed ? ['The automatic top-up of the account is disabled.'] : []),
    ],
    rows: [
      ['Account', slug],
      ['Payment', purchase.payment],
      ...(purchase.invoice === undefined ? [] : ([['Invoice', invoiceNumber(purchase.invoice)]] as const)),
    ],
  };
}

function unbookedPage({ owner, slug, payment, title, ...money }: Mail & { readonly kind: 'unbooked' }): Page {
  const price = writePrice(money.price_cents, money.currency);
  const [name, why] =
    slug === ''
      ? [owner, 'is not in the record: it may have been restored from a backup that is older than the account']
      : [slug, 'has been removed'];
  return {
    subject: `A payment must be refunded by hand: ${price} by ${name}`,
    lines: [
      `${price} for "${title}" was paid by the account ${name}, which ${why}.`,
      'No credits were added and no invoice was written. Refund the payment at the payment provider, unless it belongs to another installation that sells through the same account there.',
    ],
    rows: [
      ['Account', slug === '' ? owner : `${slug} (${owner})`],
      ['Payment', payment],
    ],
  };
}

/** The pack of a dispute after a refund has lapsed before. */
function lapsedLine(lapsed: number, total: number): string {
  if (lapsed === 0) return 'No unused credit of its pack was left to take back. What was used stays used.';
  return `${lapsed} of its ${total} credits had not been used: they have lapsed. What was used stays used.`;
}

/** `null` for a link whose secret can no longer be opened. */
function linkPage(
  mail: MailedLink & Pick<Mail, 'at'>,
  { account: { name }, secret, dashboardUrl }: Reader,
): Page | null {
  if (secret === null) return null;
  const url = signInUrl(dashboardUrl, secret);
  // A moment, because the mail server may have been away for longer than the link works.
  const end = minuteOf(mail.at + signInLinkMs[mail.kind]);
  if (mail.kind === 'invitation') {
    return {
      subject: `${mail.by} invites you to ${name}`,
      lines: [
        `${mail.by} invites you to the account ${name} as ${mail.role}. This link signs you in once, until ${end} UTC; set a password or a passkey then.`,
        'If you expect no invitation, ignore this mail.',
      ],
      url,
    };
  }
  return {
    subject: 'Your sign-in link',
    lines: [
      `Somebody, probably you, asked for a sign-in link for this e-mail address. It signs you in once, until ${end} UTC; set a new password then.`,
      'If it was not you, ignore this mail: nothing has changed.',
    ],
    url,
  };
}

function keyPage(
  { alias, expires }: Mail & { readonly kind: 'key' },
  { account: { name }, dashboardUrl }: Reader,
): Page {
  const end = minuteOf(expires);
  return {
    subject: `The key ${alias} of ${name} expires on ${end.slice(0, 10)}`,
    lines: [
      `The API key ${alias} of ${name} expires on ${end} UTC. Calls with it are refused from then on.`,
      'On the page Keys you can give it a later end, or make another one.',
    ],
    url: `${dashboardUrl}/keys`,
  };
}

function minuteOf(time: number): string {
  return writeTime(time).slice(0, 16).replace('T', ' ');
}

/** Cards end with a month, wherever their owners are. */
function cardPage({ card, expires }: Mail & { readonly kind: 'card' }, name: string): Page {
  const month = writeTime(expires - 1).slice(0, 7);
  return {
    subject: `The card ${card} of ${name} expires at the end of ${month}`,
    lines: [
      `The card ${card}, which is stored for automatic top-ups of ${name}, expires at the end of ${month}.`,
      'Store another card on the page Billing before: a declined charge disables an automatic top-up.',
    ],
  };
}

function webhooksPage(mail: Mail & { readonly kind: 'webhooks' }, { account: { name }, dashboardUrl }: Reader): Page {
  // Receivers are told apart by account, host and path.
  const receiver = mail.receiver.slice(mail.receiver.indexOf('@') + 1);
  const answer = mail.status === '' ? 'It gave no answer.' : `Its last answer was ${mail.status}.`;
  return {
    subject: `Webhooks of ${name} to ${receiver} keep failing`,
    lines: [
      `The last ${mail.failed} webhooks of ${name} to ${receiver} were given up after all their attempts. ${answer}`,
      'Mend the receiver, then send them again on the page Webhooks. This mail comes at most once a day.',
    ],
    url: `${dashboardUrl}/webhooks`,
  };
}

function alertPage({ percent, left }: Mail & { readonly kind: 'alert' }, name: string): Page {
  const isEmpty = left === 0;
  return {
    subject: isEmpty ? `${name} has no credits left` : `${name} has used ${percent} % of its credits`,
    lines: [
      isEmpty
        ? `${name} has no credits left: further requests are refused until a pack or credits are added or the plan renews.`
        : `${name} has used ${percent} % of its credits; ${left} ${left === 1 ? 'is' : 'are'} left.`,
    ],
  };
}
