import { expect } from 'chai';
import fc from 'fast-check';
import { entryWriter, type Fields, type Level, type Log, levels, makeLog } from '../../src/base/log.ts';

const apiKey = `trawl_k1_${'Ab3'.repeat(15)}`;

function collect(level: Level = 'debug'): { log: Log; lines: string[] } {
  const lines: string[] = [];
  return { log: makeLog({ level, write: (line) => lines.push(line), now: () => 1_700_000_000_000 }), lines };
}

function lineOf(fields: Fields): string {
  const { log, lines } = collect();
  log.info('something happened', fields);
  expect(lines).to.have.length(1);
  return lines[0]!;
}

/** Returns the JSON that the log writes for one value. */
function written(value: unknown): unknown {
  return JSON.parse(lineOf({ value })).value;
}

describe('a log line', () => {
  it('is one JSON object with time, level, sentence and fields', () => {
    expect(lineOf({ job: 'j', amount: 1 })).to.equal(
      '{"at":"2023-11-14T22:13:20.000Z","level":"info","text":"something happened","job":"j","amount":1}\n',
    );
  });

  it('holds no character that moves the cursor, begins a line or turns the direction of a terminal', () => {
    const value = 'a\u009b2Jb\u007fc\u0085d\u2028e\u202ef\u2066g';
    expect(lineOf({ value, [value]: 1 })).to.match(/^[ -~]+\n$/);
    expect(JSON.parse(lineOf({ value }))).to.include({ value });
  });

  it('cannot have its own fields replaced', () => {
    const line = JSON.parse(lineOf(JSON.parse('{"at":1,"level":"x","text":"y"}')));
    expect(line).to.deep.equal({ at: '2023-11-14T22:13:20.000Z', level: 'info', text: 'something happened' });
  });

  it('carries the fields of every log above it, the nearest first', () => {
    const { log, lines } = collect();
    log.with({ job: 'j', part: 'a' }).with({ part: 'b' }).warn('slow', { seconds: 2 });
    expect(JSON.parse(lines[0]!)).to.include({ job: 'j', part: 'b', seconds: 2 });
    log.warn('alone');
    expect(JSON.parse(lines[1]!)).not.to.have.property('job');
  });

  for (const [index, level] of levels.entries()) {
    it(`is written at level ${level} and above only`, () => {
      const { log, lines } = collect(level);
      for (const each of levels) log[each]('x');
      expect(lines.map((line) => JSON.parse(line).level)).to.deep.equal(levels.slice(0, index + 1));
    });
  }
});

describe('a log hides', () => {
  const names = `authorization Authorization proxy-authorization webhook_authorization webhookAuthorization cookie set-cookie
    x-api-key x_api_key xApiKey secret TRAWL_SECRET clientSecret password token access_token stripeKey`;
  for (const name of names.split(/\s+/)) {
    it(`the field ${name}, nested ones too`, () => {
      expect(JSON.parse(lineOf({ [name]: 'canary' }))[name]).to.equal('***');
      expect(lineOf({ a: [{ [name]: { b: 'canary' } }] })).not.to.contain('canary');
      expect(written(new Map([[name, 'canary']]))).to.deep.equal({ [name]: '***' });
    });
  }

  for (const name of ['key', 'alias', 'author', 'job', 'cook']) {
    it(`nothing of the field ${name}`, () => expect(JSON.parse(lineOf({ [name]: 'seen' }))[name]).to.equal('seen'));
  }

  const texts: [title: string, text: string, shown: string][] = [
    ['an API key', apiKey, '***'],
    ['API keys within a text', `(${apiKey}) and "${apiKey}"`, '(***) and "***"'],
    ['no word that is too short for an API key', 'trawl_k1_short', 'trawl_k1_short'],
    ['a bearer value', 'sent Authorization: Bearer abc.def-1 twice', 'sent Authorization: Bearer *** twice'],
    ['an access key of S3', 'for AKIATESTTESTTESTTEST and ASIATESTTESTTESTTEST', 'for *** and ***'],
    ['a signed URL', 'PUT http://s3/b/k?partNumber=1&X-Amz-Signature=ab12 failed', 'PUT http://s3/b/k failed'],
    [
      'the parameters that sign a URL',
      'X-Amz-Credential=a%2Fb&X-Amz-Signature=ab12',
      'X-Amz-Credential=***&X-Amz-Signature=***',
    ],
    ['a bearer value in small letters', 'bearer abc', 'bearer ***'],
    ['the query of a URL', 'https://example.com/a?x_api_key=b', 'https://example.com/a'],
    ['the fragment of a URL', 'open https://example.com/sign-in#canary now', 'open https://example.com/sign-in now'],
    ['the user of a URL', 'https://u:p@example.com/a', 'https://example.com/a'],
    ['the users of several URLs', 'redis://:p@a:1,redis://u:p@b:2', 'redis://a:1,redis://b:2'],
    ['the user of a URL of several hosts', 'redis+sentinel://u:p@a:1,b:2/main', 'redis+sentinel://a:1,b:2/main'],
    ['the query of a path', 'GET /v1/usage?x_api_key=b HTTP/1.1', 'GET /v1/usage HTTP/1.1'],
    ['an empty query after a path, and no other question mark', 'is it /a? or b?', 'is it /a or b?'],
    ['no path with an @', 'https://example.com/@name/1', 'https://example.com/@name/1'],
  ];
  for (const [title, text, shown] of texts) {
    it(title, () => expect(written(text)).to.equal(shown));
  }

  it('secrets in the sentence and in names of fields', () => {
    const { log, lines } = collect();
    log.error(`failed with ${apiKey}`, { [apiKey]: 1 });
    expect(lines[0]).not.to.contain(apiKey);
  });

  it('secrets in URL objects', () => {
    expect(written(new URL('https://u:p@example.com/a?b'))).to.equal('https://example.com/a');
  });

  it('an API key wherever it stands, even where a long text is cut', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2_100 }), (before) => {
        expect(lineOf({ a: [{ b: `${'-'.repeat(before)}${apiKey}` }] })).not.to.contain('Ab3');
      }),
      { numRuns: 50, examples: [[1_980], [1_999]] },
    );
  });
});

describe('a log writes', () => {
  it('errors with message, stack, code and causes, without secrets', () => {
    const error = Object.assign(new Error(`no ${apiKey}`, { cause: new Error('deep') }), { code: 'E1' });
    const shown = written(error) as Record<string, unknown>;
    expect(shown).to.include({ message: 'no ***', code: 'E1' });
    expect(shown.stack).to.match(/^Error: no \*\*\*\n +at /);
    expect(shown.cause).to.include({ message: 'deep' });
  });

  it('each error of a collection', () => {
    expect(written(new AggregateError([new Error('one')], 'all'))).to.have.nested.property('errors[0].message', 'one');
  });

  it('at most 2,000 characters of a text', () => {
    expect(written('a'.repeat(2_000))).to.equal('a'.repeat(2_000));
    expect(written('a'.repeat(1e6)))
      .to.have.length(2_000)
      .and.match(/a…$/);
  });

  it('a bounded line for any amount of values', () => {
    expect(lineOf({ list: new Array(1e6).fill(1) }).length).to.be.below(10_000);
    expect(lineOf(Object.fromEntries(new Array(5_000).fill(0).map((_, i) => [i, i]))).length).to.be.below(20_000);
  });

  const cycle: Record<string, unknown> = { a: 1 };
  cycle.self = cycle;
  const twice = { a: 1 };
  const thrower = {
    b: 2,
    get a() {
      throw new Error('no');
    },
  };
  const proxy = new Proxy({}, { ownKeys: () => expect.fail('asked') });
  const values: [title: string, value: unknown, shown: unknown][] = [
    ['a cycle', cycle, { a: 1, self: '[cycle]' }],
    ['the same object twice', [twice, twice], [{ a: 1 }, { a: 1 }]],
    ['a getter that throws', thrower, { a: '[unreadable]', b: 2 }],
    ['a proxy that throws', proxy, '[unreadable]'],
    ['an invalid date', new Date(Number.NaN), '[unreadable]'],
    ['a date', new Date(0), '1970-01-01T00:00:00.000Z'],
    ['a BigInt', 12n, '12'],
    ['a symbol', Symbol('s'), 'Symbol(s)'],
    ['a function', () => 'canary', '[function]'],
    ['bytes', Buffer.from('canary'), '[6 bytes]'],
    ['a set', new Set([1, 2]), [1, 2]],
    ['NaN as null', Number.NaN, null],
    ['an object with toJSON', { toJSON: () => expect.fail('asked'), a: 1 }, { toJSON: '[function]', a: 1 }],
    ['arrays that are nested too deep', [[[[[[[[1]]]]]]]], [[[[[['[deeper]']]]]]]],
  ];
  for (const [title, value, shown] of values) {
    it(`${title} without throwing`, () => expect(written(value)).to.deep.equal(shown));
  }

  it('a line although the fields of its parent cannot be read', () => {
    const { log, lines } = collect();
    log.with(thrower).info('x', thrower);
    log.with(proxy).info('x');
    expect(lines.map((line) => JSON.parse(line).text)).to.deep.equal(['x', 'x']);
  });

  it('any fields as one line of JSON', () => {
    fc.assert(
      fc.property(fc.object({ withBigInt: true, withDate: true, withMap: true, withSet: true }), (fields) => {
        expect(lineOf(fields)).to.match(/^\{.*\}\n$/);
        expect(JSON.parse(lineOf(fields)).level).to.equal('info');
      }),
    );
  });
});

describe('a log line for people', () => {
  const terminal = { isTTY: true };
  const file = { isTTY: false };
  const time = new Date(1_700_000_000_000).toTimeString().slice(0, 8);
  const read = (line: ReturnType<typeof entryWriter>, write: (log: Log) => void) => {
    let text = '';
    const log = makeLog({ level: 'debug', write: (one) => (text += one), now: () => 1_700_000_000_000, line });
    write(log.with({ role: 'up' }));
    return text;
  };
  const plain = entryWriter('text', file, true);

  it('has the time of day, the part, the sentence and the fields, without colours in a file', () => {
    const text = read(plain, (log) => log.with({ part: 'api' }).info('a job ended', { job: 'j', seconds: 2 }));
    expect(text).to.equal(`${time} api        a job ended job=j seconds=2\n`);
  });

  it('names the role where there is no part, and the level of a warning and of an error', () => {
    expect(read(plain, (log) => log.warn('it is slow'))).to.equal(`${time} up         warn: it is slow\n`);
    expect(read(plain, (log) => log.error('it broke'))).to.equal(`${time} up         error: it broke\n`);
  });

  it('quotes values with spaces, and lets nothing control the terminal', () => {
    const fields = { said: 'two words', more: { deep: [1] }, bad: 'a\x1b]0;title\x07', 'na\nme': 1 };
    const text = read(plain, (log) => log.info('it\x1b[2J said', fields));
    expect(text.slice(time.length)).to.equal(
      ` up         it?[2J said said="two words" more={"deep":[1]} bad=a?]0;title? na?me=1\n`,
    );
  });

  it('has colours on a terminal unless NO_COLOR is set, and clears the rest of its line there', () => {
    const coloured = read(entryWriter('auto', terminal, true), (log) => log.error('it broke', { job: 'j' }));
    expect(coloured).to.equal(
      `\x1b[K\x1b[90m${time}\x1b[0m \x1b[31mup        \x1b[0m \x1b[31merror:\x1b[0m it broke \x1b[90mjob=j\x1b[0m\n`,
    );
    const plainly = read(entryWriter('text', terminal, false), (log) => log.info('it works'));
    expect(plainly).to.equal(`\x1b[K${time} up         it works\n`);
  });

  it('is JSON in a file and wherever JSON is asked for, secrets hidden in either', () => {
    for (const line of [entryWriter('auto', file, true), entryWriter('json', terminal, true)]) {
      expect(JSON.parse(read(line, (log) => log.info('it works', { apiKey })))).to.include({
        role: 'up',
        apiKey: '***',
      });
    }
    expect(read(plain, (log) => log.info(`it works with ${apiKey}`, { apiKey }))).to.not.contain(apiKey);
  });
});
