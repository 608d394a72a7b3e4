import { expect } from 'chai';
import { failures } from '../../src/base/errors.ts';
import { readInspection, readListing } from '../../src/model/inspection-result.ts';
import { someMetadata } from '../support/jobs.ts';

describe('an answer of the inspector', () => {
  const rows: [what: string, json: unknown, read: unknown][] = [
    ['no object', 'metadata', null],
    ['nothing', null, null],
    ['an object without either', {}, null],
    ['metadata', { metadata: { ...someMetadata, secret: 'x' } }, { metadata: someMetadata }],
    ['metadata beside a failure', { metadata: someMetadata, failure: { code: 'private' } }, { metadata: someMetadata }],
    ['metadata that is no object', { metadata: 'a film' }, null],
    ['a failure', { failure: { code: 'private', text: 'Ask.' } }, { failure: { code: 'private', text: 'Ask.' } }],
    [
      'a failure beside metadata that is no object',
      { metadata: null, failure: { code: 'private', text: 'Ask.' } },
      { failure: { code: 'private', text: 'Ask.' } },
    ],
    [
      'a failure without a text',
      { failure: { code: 'private', text: 7 } },
      { failure: { code: 'private', text: failures.private.sentence } },
    ],
    [
      'a failure of an unknown code',
      { failure: { code: 'no_such_code' } },
      { failure: { code: 'unclassified', text: failures.unclassified.sentence } },
    ],
    [
      'a failure with a long text',
      { failure: { code: 'private', text: 'x'.repeat(601) } },
      { failure: { code: 'private', text: 'x'.repeat(600) } },
    ],
    ['a failure that is no object', { failure: 'private' }, null],
    ['a failure that is nothing', { failure: null }, null],
  ];
  for (const [what, json, read] of rows) {
    it(`an answer of the inspector that is ${what} is read as ${JSON.stringify(read)?.slice(0, 60)}`, () =>
      expect(readInspection(json)).to.deep.equal(read));
  }
});

describe('a listing of the inspector', () => {
  const failure = { code: 'private', text: 'Ask.' };
  const rows: [what: string, json: unknown, read: unknown][] = [
    ['the URLs of entries', { entries: ['https://a.example/1'], more: 1 }, { entries: ['https://a.example/1'] }],
    ['no entries', { entries: [] }, { entries: [] }],
    ['entries beside a failure', { entries: ['https://a.example/1'], failure }, { entries: ['https://a.example/1'] }],
    ['a failure', { failure }, { failure }],
    ['a number among entries', { entries: ['https://a.example/1', 2] }, null],
    ['a number among entries, beside a failure', { entries: ['https://a.example/1', 2], failure }, { failure }],
    ['a text in place of entries', { entries: 'https://a.example/1' }, null],
    ['an object without either', {}, null],
    ['no object', 'https://a.example/1', null],
  ];
  for (const [what, json, read] of rows) {
    it(`is ${read === null ? 'not understood' : 'read'} with ${what}`, () =>
      expect(readListing(json)).to.deep.equal(read));
  }
});
