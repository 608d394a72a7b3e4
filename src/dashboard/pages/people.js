import { useAnswer } from '/answers.js';
import { Action, Copy, Form, html, Notice, Table, useState, Waiting } from '/elements.js';
import { ask } from '/server.js';

const roles = ['owner', 'member', 'viewer'];

/** People who may see the account, and what they may change. */
export function People({ may, session }) {
  const { json, error, reload, change } = useAnswer('/api/people');
  const [invited, setInvited] = useState(null);
  if (!json) return html`<h1>People</h1><${Waiting} error=${error} reload=${reload} />`;
  const invite = async (form) => {
    const [email, role] = [form.get('email').trim().toLowerCase(), form.get('role')];
    const known = json.people.find((one) => one.email === email);
    const question = `${email} is ${known?.role} now. Make them ${role}, and send a new link?`;
    if (known && known.role !== role && !window.confirm(question)) return;
    setInvited(await ask('POST', '/api/people', { email, role }));
    await reload();
  };
  const remove = async (email) => {
    await change('DELETE', `/api/people/${encodeURIComponent(email)}`);
    // Its link opens nothing any more.
    if (invited?.email === email) setInvited(null);
  };
  const columns = [
    ['E-mail address', ({ email }) => email],
    ['Role', ({ role }) => role],
    ...(may.own
      ? [
          [
            'Actions',
            ({ email }) =>
              email !== session.user.email &&
              html`<${Action} kind="danger" run=${() => remove(email)} confirm=${`Remove ${email}? Their sessions end at once, and so do those of people who signed in by a link that they made, except yours here.`}>Remove<//>`,
          ],
        ]
      : []),
  ];
  return html`<h1>People</h1>
    <p class="lead">Owners do everything, members change keys, jobs and webhooks, viewers read.</p>
    ${
      may.own &&
      html`<section class="card">
      <h2>Invite somebody</h2>
      ${
        invited &&
        html`<${Notice} kind="good">
        ${invited.mailed ? `A mail with this link is on its way to ${invited.email}` : `Send this link to ${invited.email}`}: it signs them in once, within 72 hours.
        <span class="secret"><code>${invited.sign_in_url}</code><${Copy} text=${invited.sign_in_url} /></span>
      <//>`
      }
      <${Form} row button="Invite" onSend=${invite}>
        <label>E-mail address<input name="email" type="email" required /></label>
        <label>Role<select name="role">${roles.map((role) => html`<option value=${role} selected=${role === 'member'}>${role}</option>`)}</select></label>
      <//>
    </section>`
    }
    <section class="card"><${Table} caption="People of this account" columns=${columns} rows=${json.people} none="Nobody yet." /></section>`;
}
