import { type Config, isLoopback } from '../base/config.ts';
import { innermost, messageOf } from '../base/errors.ts';
import { type Finding, findingOf, fine, judged, note, problem } from './doctor-finding.ts';

type PartnerSettings = Pick<Config, 'smtpUrl' | 'stripeKey' | 'stripeUrl'>;

/** Logs in to the mail server, and asks Stripe for one payment, where they are set; sends no mail and takes no money. */
export async function checkPartners({ smtpUrl, stripeKey, stripeUrl }: PartnerSettings): Promise<Finding[]> {
  const asked = [stripeKey && checkStripe(stripeKey, stripeUrl), smtpUrl && checkMail(smtpUrl)];
  return (await Promise.all(asked)).filter((finding) => finding !== null && finding !== '');
}

async function checkStripe(key: string, url: string | null): Promise<Finding> {
  const about = 'stripe';
  // The libraries of both are loaded only here, because they are large.
  const { isLive, tryStripe } = await import('../billing/stripe-provider.ts');
  try {
    const refusal = await tryStripe(key, url);
    const well = `Stripe takes TRAWL_STRIPE_KEY, a key of the ${isLive(key) ? 'live' : 'test'} mode.`;
    return judged(about, refusal === null, well, `Stripe refuses TRAWL_STRIPE_KEY: ${refusal}.`);
  } catch (error) {
    return awayFinding(about, 'Stripe', error);
  }
}

async function checkMail(url: string): Promise<Finding> {
  const about = 'mail';
  const { host, hostname } = new URL(url);
  const server = `The mail server ${host}`;
  const { tryMailServer } = await import('../billing/mailer.ts');
  try {
    const { isSecure, login, user, answer } = await tryMailServer(url);
    const way = isSecure ? 'over TLS' : 'without TLS';
    const sentence = {
      taken: `takes the login of ${user}, ${way}`,
      refused: `refuses the user or password of TRAWL_SMTP_URL: ${answer}`,
      'not offered': `offers no login, so user and password of TRAWL_SMTP_URL are not used; it answers ${way}`,
      'not wanted': `answers, ${way}; TRAWL_SMTP_URL names no user`,
    }[login];
    if (login === 'refused') return problem(about, `${server} ${sentence}.`);
    const isOpen = !isSecure && !isLoopback(hostname);
    const open = isOpen ? ': mails and passwords can be read on the network' : '';
    return findingOf(login === 'not offered' || isOpen ? 'note' : 'ok', about, `${server} ${sentence}${open}.`);
  } catch (error) {
    return awayFinding(about, server, error);
  }
}

/** Checks that the collector takes a request without spans; nothing but traces is missing while it does not. */
export async function checkTraces({ tracesUrl: url }: Pick<Config, 'tracesUrl'>): Promise<Finding[]> {
  if (url === null) return [];
  const about = 'traces';
  // Loaded only here, because the SDK of OpenTelemetry is large.
  const { askCollector } = await import('../base/otlp-traces.ts');
  const failure = await askCollector(url);
  if (failure === null) return [fine(about, `${url} takes spans.`)];
  const text =
    typeof failure === 'number'
      ? `${url} answers ${failure} to spans: they are dropped.`
      : `${url} cannot be asked: ${failure.message}. Spans are dropped.`;
  return [note(about, text)];
}

function awayFinding(about: string, other: string, error: unknown): Finding {
  const words = messageOf(innermost(error)).replace(/[\s.:]+$/, '');
  return problem(about, `${other} cannot be asked: ${words}. In a cluster networkPolicy.billing must open the way.`);
}
