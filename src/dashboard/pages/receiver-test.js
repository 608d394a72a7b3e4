import { Action, Form, html, Notice, useState } from '/elements.js';
import { ask } from '/server.js';

const pauseMs = 400;
const maxWaitMs = 90_000;
const nothing = 'Nothing came back from this test: send another one.';

/** Has a test sent, and returns how it ended. */
async function send(receiver) {
  const { test } = await ask('POST', '/api/webhooks/tests', receiver);
  const end = Date.now() + maxWaitMs;
  while (Date.now() < end) {
    const found = await ask('GET', `/api/webhooks/tests/${test}`);
    if (found.state === 'ended') return found;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  throw new Error(nothing);
}

function Ended({ test }) {
  return test && html`<${Notice} kind=${test.delivered ? 'good' : 'bad'}>${test.sentence}<//>`;
}

/** A form that sends a test to an address. */
export function ReceiverForm() {
  const [test, setTest] = useState(null);
  const onSend = async (form) => {
    setTest(null);
    setTest(await send({ url: form.get('url') }));
  };
  return html`<section class="card">
    <h2>Try a receiver</h2>
    <p>One post, signed like any other, with the body <code>${'{"id": "…", "type": "test", …}'}</code> and the header <code>x-trawl-test: true</code>.</p>
    <${Form} onSend=${onSend} button="Send a test">
      <label>Address of the receiver <input name="url" type="url" required maxlength="2048" placeholder="https://example.com/hook" /></label>
      <${Ended} test=${test} />
    <//>
  </section>`;
}

/** A button that sends a test to the receiver that a job names. */
export function JobReceiver({ id }) {
  const [test, setTest] = useState(null);
  const run = async () => {
    setTest(null);
    setTest(await send({ job: id }));
  };
  return html`<${Action} run=${run}>Send its receiver a test<//><${Ended} test=${test} />`;
}
