import { createTransport } from 'nodemailer';

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

export interface Mailer {
  /** Resolves to `refused` when the server will never take mail for this address; throws when it may be tried again. */
  send(letter: Letter): Promise<'sent' | 'refused'>;
}

interface SmtpOptions {
  /** Asked for each mail, because the password in it may change. */
  readonly url: () => string;
  readonly from: string;
}

const timeoutMs = 15_000;

/** Sends through an SMTP server: `smtp://` takes STARTTLS where it is offered, `smtps://` is TLS from the start. */
export function openSmtp({ url, from }: SmtpOptions): Mailer {
  return {
    async send({ to, attachments = [], ...letter }) {
      try {
        // As an object: a text with a comma would be two addresses.
        const headers = { 'Auto-Submitted': 'auto-generated' };
        await openTransport(url()).sendMail({
          from,
          to: { name: '', address: to },
          headers,
          ...letter,
          attachments: [...attachments],
        });
        return 'sent';
      } catch (error) {
        if (isFinal(error)) return 'refused';
        throw error;
      }
    },
  };
}

/** Opens nothing yet: each mail has a connection of its own. */
function openTransport(url: string) {
  return createTransport({
    url,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
}

/** A 5xx answer to this recipient; one to our own name or password is the operator's to mend. */
function isFinal(error: unknown): boolean {
  const { code, responseCode = 0 } = error as { readonly code?: string; readonly responseCode?: number };
  return code === 'EENVELOPE' && responseCode >= 500;
}
