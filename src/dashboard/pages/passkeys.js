import { useAnswer } from '/answers.js';
import { Action, Dialog, Form, html, Moment, Notice, Table, useState, Waiting } from '/elements.js';
import { ask } from '/server.js';

/** True in a browser that can make and use passkeys. */
export const canUsePasskeys =
  typeof PublicKeyCredential === 'function' && 'parseRequestOptionsFromJSON' in PublicKeyCredential;

/** Signs in with a passkey that the person chooses. */
export async function signInByPasskey() {
  const options = PublicKeyCredential.parseRequestOptionsFromJSON(await ask('POST', '/api/sign-in/passkey', {}));
  const chosen = await navigator.credentials.get({ publicKey: options }).catch(explain);
  await ask('POST', '/api/sign-in', { passkey: chosen.toJSON() });
}

function explain(error) {
  const isKnown = error.name === 'InvalidStateError';
  throw new Error(
    isKnown ? 'This device has a passkey of yours already.' : 'No passkey was chosen. Nothing has changed.',
  );
}

/** The passkeys of the person who is signed in. */
export function Passkeys({ load }) {
  const { json, error, reload, change } = useAnswer('/api/passkeys');
  const [renamed, setRenamed] = useState(null);
  const [isAdded, setAdded] = useState(false);
  if (!json)
    return html`<section class="card"><h2>Passkeys</h2><${Waiting} error=${error} reload=${reload} /></section>`;
  const add = async (form) => {
    setAdded(false);
    const name = form.get('name');
    const options = await ask('POST', '/api/passkeys/begin', { name });
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
    const made = await navigator.credentials.create({ publicKey }).catch(explain);
    await change('POST', '/api/passkeys', { name, response: made.toJSON() });
    setAdded(true);
    await load();
  };
  const rename = async (form) => {
    await change('PATCH', `/api/passkeys/${renamed.id}`, { name: form.get('name') });
    setRenamed(null);
  };
  const remove = async (id) => {
    await change('DELETE', `/api/passkeys/${id}`);
    await load();
  };
  const columns = [
    ['Name', ({ name }) => html`<b>${name}</b>`],
    ['Added', ({ created_at }) => html`<${Moment} at=${created_at} />`],
    ['Last sign-in', ({ last_used_at }) => html`<${Moment} at=${last_used_at} none="never" />`],
    [
      'Actions',
      (passkey) => html`<div class="actions">
        <button type="button" onClick=${() => setRenamed(passkey)}>Rename</button>
        <${Action} kind="danger" run=${() => remove(passkey.id)} confirm=${`Remove ${passkey.name}? It signs nobody in any more; sessions go on.`}>Remove<//>
      </div>`,
    ],
  ];
  const reason = json.possible
    ? 'This browser cannot make passkeys.'
    : 'Passkeys need a dashboard that is reached by a name over https, or at localhost.';
  return html`<section class="card">
    <h2>Passkeys</h2>
    <p class="quiet">A passkey signs you in with the lock of your device, without a password.</p>
    ${isAdded && html`<${Notice} kind="good">The passkey is added. It signs you in from now on.<//>`}
    ${
      json.possible && canUsePasskeys
        ? html`<${Form} row button="Add a passkey" onSend=${add}>
          <label>Name of the new passkey<input name="name" required maxlength="60" placeholder="laptop" /></label>
        <//>`
        : html`<p class="quiet">${reason}</p>`
    }
    <${Table} caption="Your passkeys, oldest first" columns=${columns} rows=${json.passkeys} none="No passkey yet." />
    ${
      renamed &&
      html`<${Dialog} title=${`Rename ${renamed.name}`} onClose=${() => setRenamed(null)}>
        <${Form} button="Save" onSend=${rename} more=${html`<button type="button" onClick=${() => setRenamed(null)}>Cancel</button>`}>
          <label>New name<input name="name" required maxlength="60" defaultValue=${renamed.name} /></label>
        <//>
      <//>`
    }
  </section>`;
}
