import { useAnswer } from '/answers.js';
import { Action, Dialog, Form, html, Notice, useEffect, useState } from '/elements.js';
import { canUsePasskeys, signInByPasskey } from '/passkeys.js';
import { ask, ofAccount } from '/server.js';

/** Sentences of failed sign-ins with OpenID Connect. */
const reasons = {
  openid: 'Only people who were invited, with an e-mail address that the provider has verified, get in.',
  denied: 'The provider of your organisation did not let you in: ask there.',
  late: 'It took too long or was begun in another browser: begin again.',
  away: 'The provider of your organisation did not answer as it should: try again later, or tell the operator.',
  blocked: 'Too many sign-ins from your address failed: try again later.',
};

/** The page of a link or of a password; as a dialog when a session has ended while a page was open, so that no input is lost. */
export function SignIn({ onDone, onClose, isOver = false }) {
  const [refused, setRefused] = useState({});
  const hash = useHash();
  // Elsewhere it is a mark of a page.
  const given = !isOver && location.pathname === '/sign-in' ? hash.slice(1) : '';
  const token = given === refused.token ? '' : given;
  const [isMailed, setMailed] = useState(false);
  const { json: ways } = useAnswer('/api/sign-in');
  const failed = new URLSearchParams(location.search).get('failed');
  // A person who has signed in in another tab comes back to this one.
  useEffect(() => {
    if (!isOver) return;
    window.addEventListener('focus', onDone);
    return () => window.removeEventListener('focus', onDone);
  }, [isOver, onDone]);
  const byLink = async () => {
    try {
      await ask('POST', '/api/sign-in', { token });
    } catch (error) {
      if (error.status !== 401) throw error;
      // The person of a link that is used up may have a password.
      setRefused({ token, error });
      return;
    }
    history.replaceState(null, '', '/sign-in');
    await onDone();
  };
  const byPassword = async (form) => {
    await ask('POST', '/api/sign-in', { email: form.get('email'), password: form.get('password') });
    await onDone();
  };
  const byPasskey = async () => {
    await signInByPasskey();
    await onDone();
  };
  const mailLink = async (form) => {
    await ask('POST', '/api/sign-in/forgotten', { email: form.get('address') });
    setMailed(true);
  };
  const here = location.pathname === '/sign-in' ? '/' : location.pathname + location.search;
  // In a tab of its own where this page must stay.
  const openid = ofAccount(`/api/sign-in/openid?${new URLSearchParams({ to: isOver ? '/' : here })}`);
  const lost = ways?.mail
    ? html`<details class="lost">
        <summary>No password yet, or lost?</summary>
        ${
          isMailed
            ? html`<${Notice} kind="good">If this address is known here, a mail with a link is on its way.<//>`
            : html`<${Form} button="Mail me a link" onSend=${mailLink}>
              <label>Your e-mail address<input name="address" type="email" autocomplete="email" required /></label>
            <//>`
        }
      </details>`
    : html`<p class="hint">No password yet, or lost? Ask an owner of the account or the operator for a new sign-in link.</p>`;
  const content = token
    ? html`<p>This link signs you in once.</p>
        <${Form} button="Sign in" onSend=${byLink} />`
    : html`<${Form} button="Sign in" onSend=${byPassword}>
        <label>E-mail address<input name="email" type="email" autocomplete="username" required /></label>
        <label>Password<input name="password" type="password" autocomplete="current-password" required /></label>
      <//>
      ${ways?.passkeys && canUsePasskeys && html`<p><${Action} run=${byPasskey}>Sign in with a passkey<//></p>`}
      ${ways?.openid && html`<p><a class="button" data-leaves target=${isOver ? '_blank' : undefined} href=${openid}>Sign in with your organisation</a></p>`}
      ${lost}`;
  if (isOver) {
    return html`<${Dialog} title="Your session has ended" onClose=${onClose}>
      <p>Sign in again: what you have typed stays where it is.</p>
      ${content}
    <//>`;
  }
  return html`<main class="alone card">
    <div class="brand"><img src="/icon.svg" alt="" />trawl</div>
    <h1>Sign in</h1>
    ${failed !== null && html`<${Notice}>That sign-in failed. ${reasons[failed]}<//>`}
    ${given && given === refused.token && html`<${Notice}>${refused.error.message}<//>`}
    ${content}
  </main>`;
}

/** Returns the part of the address behind `#`: a link that is pasted there loads no page. */
function useHash() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const show = () => setHash(location.hash);
    window.addEventListener('hashchange', show);
    return () => window.removeEventListener('hashchange', show);
  }, []);
  return hash;
}
