import { expect } from 'chai';
import fc from 'fast-check';
import { contentTypes } from '../../src/model/content-types.ts';
import {
  maxKeyLength,
  objectPrefix,
  readDetail,
  readVerdict,
  writeTerminationMessage,
} from '../../src/model/outcome.ts';
import { someDelivered, someMetadata } from '../support/jobs.ts';

const delivered = someDelivered(1);
const done = { is: 'done', metadata: someMetadata, delivered };

function doneWith(wrong: object): object {
  return { ...done, delivered: { ...delivered, ...wrong } };
}

/** [what is said, its JSON, what is believed] */
const believed: [string, unknown, unknown][] = [
  ['a delivered file', done, done],
  ['the smallest file', doneWith({ bytes: 1 }), doneWith({ bytes: 1 })],
  ['the longest key', doneWith({ key: 'a'.repeat(maxKeyLength) }), doneWith({ key: 'a'.repeat(maxKeyLength) })],
  ['metadata alone', { ...done, delivered: null }, { ...done, delivered: null }],
  ['a verdict without its unknown fields', { ...doneWith({ mode: 1 }), exit: 0 }, done],
  [
    'metadata of a wrong type as null',
    { ...done, metadata: { ...someMetadata, ext: 7 } },
    { ...done, metadata: { ...someMetadata, ext: null } },
  ],
  ['a failure', { is: 'failed', code: 'private' }, { is: 'failed', code: 'private' }],
  [
    'a failure with words',
    { is: 'failed', code: 'private', text: 'No.' },
    { is: 'failed', code: 'private', text: 'No.' },
  ],
  ['words of null as none', { is: 'failed', code: 'private', text: null }, { is: 'failed', code: 'private' }],
  ['empty words as none', { is: 'failed', code: 'private', text: ' \n ' }, { is: 'failed', code: 'private' }],
  [
    'control characters as one space',
    { is: 'failed', code: 'private', text: '\u001b[1mA\r\nB\0\u2028C' },
    { is: 'failed', code: 'private', text: '[1mA B C' },
  ],
  [
    'long words, cut to their limit',
    { is: 'failed', code: 'private', text: 'a'.repeat(9000) },
    { is: 'failed', code: 'private', text: 'a'.repeat(600) },
  ],
  [
    'words that are cut at a space, without that space',
    { is: 'failed', code: 'private', text: `${'a'.repeat(599)} b` },
    { is: 'failed', code: 'private', text: 'a'.repeat(599) },
  ],
  [
    'half a surrogate pair at the end as a replacement character',
    { is: 'failed', code: 'private', text: `${'a'.repeat(599)}😀` },
    { is: 'failed', code: 'private', text: `${'a'.repeat(599)}\ufffd` },
  ],
  ['an unknown failure as unclassified', { is: 'failed', code: 'gremlins' }, { is: 'failed', code: 'unclassified' }],
  [
    'a failure named like a member of every object as unclassified',
    { is: 'failed', code: 'toString' },
    { is: 'failed', code: 'unclassified' },
  ],
  [
    'cancelled as unclassified, because a worker cannot cancel',
    { is: 'failed', code: 'cancelled' },
    { is: 'failed', code: 'unclassified' },
  ],
  [
    'queue_timeout as unclassified, because a worker knows nothing of the queue',
    { is: 'failed', code: 'queue_timeout' },
    { is: 'failed', code: 'unclassified' },
  ],
  [
    'worker_lost as unclassified, because a lost worker cannot report it',
    { is: 'failed', code: 'worker_lost' },
    { is: 'failed', code: 'unclassified' },
  ],
  ['an interruption', { is: 'interrupted', reason: 'told to\nend' }, { is: 'interrupted', reason: 'told to end' }],
];

/** [what is said, its JSON] */
const disbelieved: [string, unknown][] = [
  ['nothing', undefined],
  ['null', null],
  ['text', 'done'],
  ['a list', [done]],
  ['an empty object', {}],
  ['an unknown word', { ...done, is: 'finished' }],
  ['done without metadata', { is: 'done', delivered }],
  ['done with a list of metadata', { ...done, metadata: [] }],
  ['done without a file or null', { is: 'done', metadata: someMetadata }],
  ['a file that is text', { ...done, delivered: 'file' }],
  ['a failure without a code', { is: 'failed' }],
  ['a failure with a number as its code', { is: 'failed', code: 7 }],
  ['a failure with a list as its words', { is: 'failed', code: 'private', text: ['No.'] }],
  ['an interruption without a reason', { is: 'interrupted' }],
  ['a file without a key', doneWith({ key: undefined })],
  ['an empty key', doneWith({ key: '' })],
  ['a key that is too long', doneWith({ key: 'a'.repeat(maxKeyLength + 1) })],
  ['an absolute key', doneWith({ key: '/etc/passwd' })],
  ['a key that leaves its folder', doneWith({ key: 'a/../../b' })],
  ['a hidden key', doneWith({ key: 'a/.b' })],
  ['a key with an empty part', doneWith({ key: 'a//b' })],
  ['a key that ends with a slash', doneWith({ key: 'a/b/' })],
  ['a key with a line end', doneWith({ key: 'a/b\n' })],
  ['a key with a back-slash', doneWith({ key: 'a\\b' })],
  ['an empty file', doneWith({ bytes: 0 })],
  ['less than an empty file', doneWith({ bytes: -5 })],
  ['half a byte', doneWith({ bytes: 1.5 })],
  ['a size as text', doneWith({ bytes: '12' })],
  ['a size beyond counting', doneWith({ bytes: 2 ** 53 })],
  ['a short checksum', doneWith({ sha256: 'ab' })],
  ['a checksum of one letter more', doneWith({ sha256: `a${'ab'.repeat(32)}` })],
  ['a list with a checksum', doneWith({ sha256: ['ab'.repeat(32)] })],
  ['a checksum in capitals', doneWith({ sha256: 'AB'.repeat(32) })],
  ['a checksum with a line end', doneWith({ sha256: `${'ab'.repeat(32)}\n` })],
  ['the content type of a page', doneWith({ content_type: 'text/html' })],
  ['the content type of a picture that runs scripts', doneWith({ content_type: 'image/svg+xml' })],
  ['a type with a parameter', doneWith({ content_type: 'video/mp4; x' })],
  ['a list of types', doneWith({ content_type: ['video/mp4'] })],
];

describe('readVerdict', () => {
  for (const [title, json, wanted] of believed) {
    it(`accepts ${title}`, () => {
      expect(readVerdict(json)).to.deep.equal(wanted);
    });
  }

  for (const [title, json] of disbelieved) {
    it(`refuses ${title}`, () => {
      expect(readVerdict(json)).to.equal(null);
    });
  }

  it('accepts every content type that is delivered', () => {
    for (const content_type of contentTypes) {
      expect(readVerdict(doneWith({ content_type }))).to.deep.equal(doneWith({ content_type }));
    }
  });

  it('reads any JSON without an error, keeps within its limits and accepts its own output', () => {
    const said = fc.record({
      is: fc.constantFrom('done', 'failed', 'interrupted'),
      code: fc.string(),
      text: fc.string(),
      reason: fc.string(),
    });
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), said), (json) => {
        const outcome = readVerdict(json);
        expect(readVerdict(outcome)).to.deep.equal(outcome);
        expect(JSON.stringify(outcome).length).to.be.below(20_000);
      }),
    );
  });
});

describe('objectPrefix', () => {
  it('is no prefix of that of another attempt of the job', () => {
    expect(objectPrefix('id', 1)).to.equal('id/1/');
    expect(objectPrefix('id', 11).startsWith(objectPrefix('id', 1))).to.equal(false);
  });
});

describe('readDetail', () => {
  it('leaves out the paths of URLs where a long text is cut within one', () => {
    const urls = (count: number) =>
      `[https] https://media.example/film?${'token=secret&'.repeat(60)} failed\n`.repeat(count);
    for (const letters of [0, 7, 100, 300])
      expect(readDetail({ detail: urls(20) + 'x'.repeat(letters) }), `${letters}`).not.to.include('secret');
    expect(readDetail({ detail: urls(20) })).to.match(/^failed \[https\] https:\/\/media\.example\/… failed /);
    expect(readDetail({ detail: `https://media.example/${'secret'.repeat(2_000)}` })).to.equal('');
  });

  const rows: [what: string, json: unknown, detail: string][] = [
    ['nothing for a verdict without a detail', { is: 'failed' }, ''],
    ['nothing for a detail that is no text', { detail: 7 }, ''],
    ['nothing for no verdict', null, ''],
    ['one line, with a blank for each run of line ends', { detail: 'a\r\n\t\u2028b\n' }, 'a b'],
    ['the last 2,000 characters', { detail: `${'x'.repeat(2000)}abc` }, `${'x'.repeat(1997)}abc`],
    ['no half of a pair of surrogates', { detail: `😀${'x'.repeat(1999)}` }, `\ufffd${'x'.repeat(1999)}`],
    ['the last 2,000 of 8,000 characters without a blank', { detail: 'x'.repeat(8000) }, 'x'.repeat(2000)],
    ['nothing of 8,001 without one, which may be a URL', { detail: 'x'.repeat(8001) }, ''],
    ['the last words of many', { detail: 'word '.repeat(2001) }, 'word '.repeat(401).slice(4, -1)],
  ];
  for (const [what, json, detail] of rows) it(`keeps ${what}`, () => expect(readDetail(json)).to.equal(detail));

  it('leaves out user and path of a URL whose scheme is missing or none', () => {
    const detail = '://user:secret@media.example/film?token=secret 1://user:secret@media.example/secret failed';
    expect(readDetail({ detail })).to.equal('://media.example/… 1://media.example/… failed');
  });
});

describe('writeTerminationMessage', () => {
  it('leaves out what the programs said, which may have the URL', () => {
    const failed = { is: 'failed', code: 'unclassified', text: 'The download failed' } as const;
    const said = writeTerminationMessage({ ...failed, detail: 'https://example.com/?token=secret' });
    expect(JSON.parse(said)).to.deep.equal(failed);
  });

  it('drops the least important metadata first', () => {
    const metadata = { ...someMetadata, title: 'x'.repeat(500), description: '"'.repeat(10_000) };
    const short = JSON.parse(writeTerminationMessage({ is: 'done', metadata, delivered: null }));
    expect(short.metadata).to.deep.equal({ ...metadata, description: null });
  });

  const order = ['description', 'title', 'channel', 'id'] as const;
  for (const n of order.keys()) {
    const long = order.slice(0, n + 1);
    it(`has no ${long.join(', ')} when each of them alone is too long`, () => {
      const short = { ...someMetadata, title: 'A film', channel: 'Someone' };
      const metadata = { ...short, ...Object.fromEntries(long.map((name) => [name, 'x'.repeat(4_096)])) };
      const wanted = { ...short, ...Object.fromEntries(long.map((name) => [name, null])) };
      expect(JSON.parse(writeTerminationMessage({ is: 'done', metadata, delivered: null })).metadata).to.deep.equal(
        wanted,
      );
    });
  }

  it('holds no URL, because its query may be a secret', () => {
    const url = 'https://site.example/film?token=canary';
    const urls = { original_url: url, webpage_url: url, thumbnail: url, channel_url: url };
    const outcome = { is: 'done', metadata: { ...someMetadata, ...urls }, delivered: null } as const;
    expect(JSON.parse(writeTerminationMessage(outcome))).to.deep.equal({ ...outcome, metadata: someMetadata });
  });

  for (const [bytes, isKept] of [
    [4096, true],
    [4097, false],
  ] as const) {
    it(`${isKept ? 'keeps' : 'drops'} a description that makes it ${bytes} bytes`, () => {
      const message = (description: string) =>
        writeTerminationMessage({ is: 'done', metadata: { ...someMetadata, description }, delivered: null });
      const description = 'x'.repeat(bytes - message('').length);
      expect(JSON.parse(message(description)).metadata.description).to.equal(isKept ? description : null);
    });
  }

  it('keeps all fields when they fit', () => {
    const outcome = { is: 'failed', code: 'timeout' } as const;
    expect(JSON.parse(writeTerminationMessage(outcome))).to.deep.equal(outcome);
  });
});
