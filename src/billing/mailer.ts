import { createTransport } from 'nodemailer';
import SMTPConnection from 'nodemailer/lib/smtp-connection';
import SMTPTransport from 'nodemailer/lib/smtp-transport';

/** One mail to one address. */
export interface Letter {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  readonly attachments?: readonly {
    readonly filename: string;
    readonly content: Buffer;
    readonly contentType: string;
  }[];
  /** The same for every attempt, so that a second copy can be told. */
  readonly messageId: string;
}

/** Resolves to `refused` when the server will never take mail for this address; throws when it may be tried again. */
export type SendLetter = (letter: Letter) => Promise<'sent' | 'refused'>;

interface SmtpOptions {
  /** Asked for each mail, because the password in it may change. */
  readonly url: () => string;
  readonly from: string;
}

const timeoutMs = 15_000;

/** Sends through an SMTP server: `smtp://` takes STARTTLS where it is offered, `smtps://` is TLS from the start. */
export function openSmtp({ url, from }: SmtpOptions): SendLetter {
  return async ({ to, attachments = [], ...letter }) => {
    try {
      // Each mail has a connection of its own.
      await createTransport(optionsOf(url())).sendMail({
        from,
        // As an object: a text with a comma would be two addresses.
        to: { name: '', address: to },
        headers: { 'Auto-Submitted': 'auto-generated' },
        ...letter,
        attachments: [...attachments],
      });
      return 'sent';
    } catch (error) {
      if (isFinal(error)) return 'refused';
      throw error;
    }
  };
}

/** Answers of a mail server to a connection that sends no mail. */
interface MailTrial {
  readonly isSecure: boolean;
  /** `refused` has its reason in `answer`; `not offered` where mails are sent without the user and the password of the URL. */
  readonly login: 'taken' | 'refused' | 'not offered' | 'not wanted';
  /** User of the URL, as the server is told it. */
  readonly user: string;
  readonly answer: string;
}

/** Connects as for a mail, logs in and leaves; throws when the server cannot be reached or speaks no SMTP. */
export async function tryMailServer(url: string): Promise<MailTrial> {
  const { options } = new SMTPTransport(optionsOf(url));
  const { auth } = options;
  const user = auth?.user ?? '';
  const connection = new SMTPConnection(options);
  try {
    await new Promise<void>((resolve, reject) => {
      connection.on('error', reject);
      connection.on('end', () => reject(new Error('the server ended the connection')));
      connection.connect((error) => (error ? reject(error) : resolve()));
    });
    const { secure: isSecure, allowsAuth } = connection;
    if (!auth) return { isSecure, login: 'not wanted', user, answer: '' };
    if (!allowsAuth) return { isSecure, login: 'not offered', user, answer: '' };
    const refusal = await new Promise<SMTPConnection.SMTPError | null>((resolve, reject) => {
      connection.on('error', reject);
      connection.on('end', () => reject(new Error('the server ended the connection')));
      connection.login(auth, (error) => resolve(error ?? null));
    });
    if (refusal === null) return { isSecure, login: 'taken', user, answer: '' };
    if (refusal.code !== 'EAUTH') throw refusal;
    const answer = (refusal.response ?? refusal.message).replaceAll(/\s+/g, ' ');
    return { isSecure, login: 'refused', user, answer };
  } finally {
    connection.close();
  }
}

function optionsOf(url: string) {
  return {
    url,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}

/** A 5xx answer to this recipient; one to our own name or password is the operator's to mend. */
function isFinal(error: unknown): boolean {
  const { code, responseCode = 0 } = error as { readonly code?: string; readonly responseCode?: number };
  return code === 'EENVELOPE' && responseCode >= 500;
}
