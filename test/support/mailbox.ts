import type { AddressInfo } from 'node:net';
import { type ParsedMail, simpleParser } from 'mailparser';
import { SMTPServer } from 'smtp-server';

interface Received {
  readonly to: string;
  readonly mail: ParsedMail;
}

export interface Mailbox {
  readonly url: string;
  /** Mails as a reader's program shows them, oldest first. */
  readonly mails: Received[];
  /** Answers of the server to a recipient; none takes the mail. */
  readonly refusals: Map<string, number>;
  /** Users and their passwords; with any of these, nobody else may send. */
  readonly users: Map<string, string>;
  /** Logins that were refused. */
  readonly refusedLogins: string[];
  stop(): Promise<void>;
}

/** Starts an SMTP server that keeps its mails. */
export async function startMailbox(): Promise<Mailbox> {
  const mails: Received[] = [];
  const refusals = new Map<string, number>();
  const users = new Map<string, string>();
  const refusedLogins: string[] = [];
  const server = new SMTPServer({
    authOptional: true,
    onAuth({ username = '', password }, _session, done) {
      if (users.get(username) === password) return done(null, { user: username });
      refusedLogins.push(username);
      done(new Error('Invalid login'));
    },
    onMailFrom(_, session, done) {
      done(users.size === 0 || session.user ? null : Object.assign(new Error('log in'), { responseCode: 530 }));
    },
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    logger: false,
    onRcptTo({ address }, _session, done) {
      const responseCode = refusals.get(address);
      done(responseCode === undefined ? null : Object.assign(new Error('refused'), { responseCode }));
    },
    onData(stream, session, done) {
      simpleParser(stream).then((mail) => {
        for (const { address } of session.envelope.rcptTo) mails.push({ to: address, mail });
        done();
      }, done);
    },
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', () => ready()));
  const { port } = server.server.address() as AddressInfo;
  return {
    url: `smtp://127.0.0.1:${port}`,
    mails,
    refusals,
    users,
    refusedLogins,
    stop: () => new Promise((stopped) => server.close(() => stopped())),
  };
}
