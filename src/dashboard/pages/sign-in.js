import { Action, Dialog, Form, html, Notice, useAnswer, useState } from '/elements.js';
import { canUsePasskeys, signInByPasskey } from '/passkeys.js';
import { ask } from '/server.js';

/** The page of a link or of a password; as a dialog when a session has ended while a page was open, so that no input is lost. */
export function SignIn({ onDone, onClose, isOver = false }) {
  const token = isOver ? '' : location.hash.slice(1);
  const [isMailed, setMailed] = useState(false);
  const { json: ways } = useAnswer('/api/sign-in');
  const hasFailed = new URLSearchParams(location.search).has('failed');
  const byLink = async () => {
    await ask('POST', '/api/sign-in', { token });
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
      ${ways?.openid && html`<p><a class="button" data-leaves href="/api/sign-in/openid">Sign in with your organisation</a></p>`}
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
    ${hasFailed && html`<${Notice}>That sign-in failed. Only people who were invited, with an e-mail address that the provider has verified, get in.<//>`}
    ${content}
  </main>`;
}
