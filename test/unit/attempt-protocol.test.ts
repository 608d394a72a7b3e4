import { expect } from 'chai';
import { readPermit, readProgress, readSpec, readUpload } from '../../src/model/attempt-protocol.ts';

const spec = {
  ...{ job: 'j', attempt: 1, endpoint: 'audio', args: { query: 'q' } },
  limits: { file_bytes: 1, seconds: 2, inspect_seconds: 3 },
  ...{ part_bytes: 4, cookies: 'a' },
};
const progress = { progress: 0, stage: 'fetch', speed_bytes: 0, eta_seconds: 1 };
const sha256 = '0'.repeat(64);
const upload = { bytes: 1, sha256, content_type: 'video/mp4', ext: 'mp4', parts: [sha256] };
const part = { url: 'https://store.example/x', headers: { a: 'b' }, start: 0, bytes: 5 };
const permit = { key: 'k', parts: [part], through_egress: true };

interface Message {
  readonly read: (json: unknown) => object | null;
  readonly good: object;
  /** Further allowed values of each field. */
  readonly also: readonly object[];
  readonly wrong: readonly object[];
}

const messages: Readonly<Record<string, Message>> = {
  'the spec of an attempt': {
    read: readSpec,
    good: spec,
    also: [{ part_bytes: null }, { cookies: null }],
    wrong: [
      ...[{ job: 1 }, { attempt: 0 }, { attempt: 1.5 }, { endpoint: 'other' }, { args: null }, { args: [] }],
      ...[{ limits: {} }, { limits: { ...spec.limits, seconds: -1 } }, { part_bytes: 0 }, { cookies: 1 }],
    ],
  },
  'the progress of an attempt': {
    read: readProgress,
    good: progress,
    also: [{ speed_bytes: null }, { eta_seconds: null }, { stages: [{ stage: 'inspect', ms: 320 }] }],
    wrong: [
      ...[{ progress: -1 }, { progress: '1' }, { stage: 'a-b' }, { speed_bytes: -1 }, { eta_seconds: 0.5 }],
      { stages: [{ stage: 'nap', ms: 1 }] },
    ],
  },
  'the request to upload': {
    read: readUpload,
    good: upload,
    also: [{ parts: [] }],
    wrong: [
      ...[{ bytes: 0 }, { sha256: 'x' }, { content_type: 'text/html' }, { ext: '../x' }, { parts: null }],
      ...[{ sha256: `${sha256}0` }, { sha256: `x${sha256}` }, { ext: 'mp4/..' }, { parts: ['x'] }],
    ],
  },
  'the permit to upload': {
    read: readPermit,
    good: permit,
    also: [
      ...[{ parts: null }, { through_egress: false }, { authorities: ['PEM'] }, { key: 'k'.repeat(200) }],
      { parts: [{ ...part, url: 'http://127.0.0.1:9000/x' }] },
    ],
    wrong: [
      ...[{ key: 'k'.repeat(201) }, { parts: {} }, { through_egress: 1 }, { authorities: [1] }],
      ...[
        ...[{ url: 'file:///etc/passwd' }, { url: 'file:///etc/https://store.example/x' }, { start: -1 }, { bytes: 0 }],
        ...[{ headers: { a: 1 } }, { headers: { a: 'b', c: 1 } }, { start: undefined }],
      ].map((change) => ({ parts: [{ ...part, ...change }] })),
    ],
  },
};

describe('The protocol between gateway and worker', () => {
  for (const [name, { read, good, also, wrong }] of Object.entries(messages)) {
    it(`reads ${name} as it was written`, () => {
      for (const change of [{}, ...also]) expect(read({ ...good, ...change })).to.deep.equal({ ...good, ...change });
    });

    it(`refuses ${name} without one of its required fields`, () => {
      for (const field of Object.keys(good)) expect(read({ ...good, [field]: undefined }), field).to.equal(null);
      for (const json of [null, [], 'x', undefined]) expect(read(json)).to.equal(null);
    });

    for (const change of wrong) {
      it(`refuses ${name} with ${JSON.stringify(change).slice(0, 120)}`, () => {
        expect(read({ ...good, ...change })).to.equal(null);
      });
    }
  }
});
