import { useAnswer } from '/answers.js';
import { Action, Form, html, Moment, Notice, Table, useState, Waiting } from '/elements.js';
import { Passkeys } from '/passkeys.js';
import { ask } from '/server.js';

const browsers = [
  ['Edg/', 'Edge'],
  ['OPR/', 'Opera'],
  ['Firefox/', 'Firefox'],
  ['Chrome/', 'Chrome'],
  ['Safari/', 'Safari'],
];
const systems = [
  ['Windows', 'Windows'],
  ['Android', 'Android'],
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Mac OS', 'macOS'],
  ['Linux', 'Linux'],
];

/** Names a browser and its system from what it says of itself; anything else as it is. */
function browserOf(agent) {
  const named = (list) => list.find(([mark]) => agent.includes(mark))?.[1];
  const [browser, system] = [named(browsers), named(systems)];
  return browser && system ? `${browser} on ${system}` : agent.slice(0, 80);
}

/** Password, passkeys and sessions of the person who is signed in. */
export function AccountPage({ session, load }) {
  const [set, setDone] = useState(null);
  const { json, error, reload, change } = useAnswer('/api/sessions');
  const setPassword = async (form) => {
    setDone(null);
    if (form.get('password') !== form.get('again')) throw new Error('The two passwords differ');
    setDone(await ask('POST', '/api/password', { password: form.get('password') }));
    await load();
    await reload();
  };
  const columns = [
    ['Signed in', ({ signed_in_at }) => html`<${Moment} at=${signed_in_at} />`],
    ['Ends', ({ ends_at }) => html`<${Moment} at=${ends_at} />`],
    ['Address', ({ ip }) => ip],
    ['Browser', ({ agent }) => html`<span title=${agent}>${browserOf(agent)}</span>`],
    [
      'Actions',
      ({ name, current }) =>
        current ? 'this one' : html`<${Action} run=${() => change('DELETE', `/api/sessions/${name}`)}>End<//>`,
    ],
  ];
  return html`<h1>Your sign-in</h1>
    <p class="lead">${session.user.email}</p>
    <section class="card">
      <h2>${session.user.has_password ? 'Change your password' : 'Set a password'}</h2>
      ${
        set &&
        html`<${Notice} kind="good">The password is set. All your other sessions and sign-in links have ended.
        ${set.passkeys_removed > 0 && ' The passkeys from before this session are removed, too: add those again that are yours.'}<//>`
      }
      <${Form} button="Set password" onSend=${setPassword}>
        <input type="hidden" name="user" autocomplete="username" value=${session.user.email} />
        <label>New password <small>8 to 256 characters</small>
          <input name="password" type="password" minlength="8" maxlength="256" autocomplete="new-password" required /></label
        >
        <label>The same again<input name="again" type="password" autocomplete="new-password" required /></label>
      <//>
    </section>
    <${Passkeys} key=${set?.passkeys_removed} load=${load} />
    <section class="card">
      <h2>Sessions</h2>
      ${
        json
          ? html`<${Table} caption="Browsers that are signed in as you" columns=${columns} rows=${json.sessions} none="None." />`
          : html`<${Waiting} error=${error} reload=${reload} />`
      }
    </section>`;
}
