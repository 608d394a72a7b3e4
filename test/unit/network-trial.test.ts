import { expect } from 'chai';
import { readNetworkTrial } from '../../src/model/network-trial.ts';

describe('the trial that a worker pod has left', () => {
  const trial = { missed: ['10.0.0.1:443', 'egress:3128'], open: [], kernel: '6.8.0' };
  const rows: [what: string, text: string, read: object | null][] = [
    ['a whole trial', JSON.stringify(trial), trial],
    ['a trial of a later release, with a field more', JSON.stringify({ ...trial, took_ms: 5 }), trial],
    ['a pod with nothing amiss', '{"missed":[],"open":[],"kernel":""}', { missed: [], open: [], kernel: '' }],
    ['a message that Kubernetes has cut', JSON.stringify(trial).slice(0, -1), null],
    ['no message', '', null],
    ['null', 'null', null],
    ['a list', JSON.stringify([trial]), null],
    ['no list of what was missed', JSON.stringify({ ...trial, missed: undefined }), null],
    ['a number among what was missed', JSON.stringify({ ...trial, missed: ['10.0.0.1:443', 443] }), null],
    ['a text for what is open', JSON.stringify({ ...trial, open: '10.0.0.1:443' }), null],
    ['null among what is open', JSON.stringify({ ...trial, open: [null] }), null],
    ['no kernel', JSON.stringify({ ...trial, kernel: undefined }), null],
    ['a number for the kernel', JSON.stringify({ ...trial, kernel: 6.8 }), null],
  ];
  for (const [what, text, read] of rows) {
    it(`is ${read === null ? 'unknown' : 'read'} for ${what}`, () =>
      expect(readNetworkTrial(text)).to.deep.equal(read));
  }
});
