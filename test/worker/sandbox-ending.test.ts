import { createHook } from 'node:async_hooks';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import type { Sandbox } from '../../src/worker/sandbox-command.ts';
import { openTestWorkspace } from '../support/workspace.ts';

const leastMs = 50;

describe('The end of a child in a namespace of its own', () => {
  for (const sandbox of ['user', 'namespace'] as Sandbox[]) {
    it(`is looked for only after bubblewrap has ended, because looking costs processor time (sandbox ${sandbox})`, async () => {
      const place = await openTestWorkspace(sandbox, 1);
      const lines = new PassThrough({ objectMode: true });
      const options = { folder: place.folder, env: {}, signal: new AbortController().signal };
      const child = place.run('/bin/cat', [], { ...options, onLine: (line) => lines.write(line) });
      const echo = async () => {
        child.write('x');
        await once(lines, 'data');
      };
      await echo();
      let looks = 0;
      const hook = createHook({ init: (_, kind) => (looks += Number(kind === 'FSREQPROMISE')) }).enable();
      for (const end = performance.now() + leastMs; performance.now() < end; ) await echo();
      hook.disable();
      await place.stop();
      await child.ended;
      expect(looks).to.equal(0);
    });
  }
});
