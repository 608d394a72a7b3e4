import { Ajv } from 'ajv';
import { expect } from 'chai';
import fc from 'fast-check';
import {
  choice,
  flag,
  number,
  type Parameter,
  type ParameterTable,
  readParameters,
  text,
} from '../../src/model/parameter-kinds.ts';
import {
  creditParameters,
  globalParameters,
  historyParameters,
  jobParameters,
  listParameters,
  parseFlags,
  parseJobId,
  parseStats,
  pollParameters,
  statsParameters,
  usageParameters,
  wantsSoftFail,
} from '../../src/model/request-parameters.ts';

type Given = Record<string, unknown>;
/** Keywords of a schema, near which it may be judged in another way. */
type Limits = Readonly<{ enum?: string[]; minimum?: number; maximum?: number; exclusiveMinimum?: number }>;

const parseList = (given: Given) => values(listParameters, given);
const parseWait = (given: Given) => values(pollParameters, given);
const parseDays = (given: Given) => values(historyParameters, given);
const parseView = (given: Given) => values(usageParameters, given);

function values(table: ParameterTable, given: Given): object {
  const read = readParameters(table, given);
  return read.ok ? { ok: true, ...read.value } : read;
}

describe('parseFlags', () => {
  const truths: [given: unknown, value: boolean][] = [
    ...['true', 'TRUE', 'True', '1', true, 1].map((given): [unknown, boolean] => [given, true]),
    ...['false', 'FALSE', 'fAlSe', '0', false, 0].map((given): [unknown, boolean] => [given, false]),
  ];
  for (const [given, value] of truths) {
    it(`D5: takes ${JSON.stringify(given)} as ${value}`, () =>
      expect(parseFlags({ soft_fail: given, is_async: given })).to.deep.equal({
        ok: true,
        soft_fail: value,
        is_async: value,
        fields: [],
      }));
  }

  const hostile = JSON.parse('{"toString":1,"valueOf":1}');
  for (const given of ['', 'yes', 'on', '2', ' true', 'true\u0000', null, 2, 0.5, {}, [], ['true'], hostile]) {
    it(`refuses ${JSON.stringify(given)} as a boolean`, () => {
      for (const name of ['soft_fail', 'is_async']) {
        const parsed = parseFlags({ [name]: given });
        expect(parsed.ok ? '' : parsed.sentence).to.match(new RegExp(`^Bad Request: ${name} must be `));
        expect(wantsSoftFail({ [name]: given })).to.equal(false);
      }
    });
  }

  it('gives false and no fields when nothing is given', () =>
    expect(parseFlags({})).to.deep.equal({ ok: true, soft_fail: false, is_async: false, fields: [] }));

  it('reads fields', () => expect(parseFlags({ fields: 'a, b.c' })).to.deep.include({ fields: [['a'], ['b', 'c']] }));

  for (const fields of ['a'.repeat(2049), 'a\u0000', 5, null, ['a', 'b']]) {
    it(`refuses the fields ${JSON.stringify(fields).slice(0, 12)}`, () => {
      const parsed = parseFlags({ fields });
      expect(parsed.ok ? '' : parsed.sentence).to.match(/^Bad Request: fields must be /);
    });
  }

  it('lets wantsSoftFail see a soft_fail beside other wrong parameters', () => {
    expect(wantsSoftFail({ soft_fail: 'true', is_async: 'x', fields: 5, query: 5 })).to.equal(true);
    expect(wantsSoftFail({})).to.equal(false);
  });
});

describe('the parameters of other routes', () => {
  const list = { ok: true, status: undefined, limit: 20, cursor: undefined };
  const page = { status: 'NotFound', limit: 100, cursor: 'abc' };
  const rows: [parse: (given: Given) => unknown, given: Given, said: unknown][] = [
    [parseList, {}, list],
    [parseList, { status: 'NotFound', limit: '100', cursor: 'abc' }, { ok: true, ...page }],
    [parseList, { limit: '1' }, { ...list, limit: 1 }],
    [parseWait, {}, { ok: true, wait: 0 }],
    [parseWait, { wait: '30' }, { ok: true, wait: 30 }],
    [parseWait, { wait: '0' }, { ok: true, wait: 0 }],
    [parseWait, { wait: '2.5' }, { ok: true, wait: 2.5 }],
    [parseWait, { wait: '0.25' }, { ok: true, wait: 0.25 }],
    [parseDays, {}, { ok: true, from: undefined, to: undefined }],
    [parseDays, { from: '2026-03-04' }, { ok: true, from: Date.UTC(2026, 2, 4), to: undefined }],
    [parseDays, { from: '1970-01-01', to: '2024-02-29' }, { ok: true, from: 0, to: Date.UTC(2024, 1, 29) }],
    [parseView, {}, { ok: true, view: 'full' }],
    [parseView, { view: 'reduced' }, { ok: true, view: 'reduced' }],
    [parseStats, { engine: 'video', other: 'x' }, { ok: true, engine: 'video', path: null }],
    [parseStats, { path: '/api/v1/audio/download' }, { ok: true, engine: 'audio', path: '/v1/audio/download' }],
  ];
  for (const [parse, given, said] of rows) {
    it(`${parse.name} understands ${JSON.stringify(given)}`, () => expect(parse(given)).to.deep.equal(said));
  }

  const statuses = 'status must be one of QueuedJob, Running, CompletedJob, Error, NotFound, BadRequest';
  const limit = 'limit must be a whole number from 1 to 100';
  const cursor = 'cursor must be the next_cursor of an earlier answer';
  const control = 'must be at most 256 characters, none of them a control character';
  const once = 'must be a single value, given once';
  const aDay = (name: string) => `${name} must be a day since 1970, such as 2026-03-04`;
  const refused: [parse: (given: Given) => unknown, name: string, values: unknown[], rest: string][] = [
    [parseList, 'status', ['running!', '', 'running'], statuses],
    [parseList, 'limit', ['0', '101', '1.5', '-1', 'x', ''], limit],
    [parseList, 'limit', [['1', '2']], `limit ${once}`],
    [parseList, 'cursor', ['', 'a b', 'a\u0000', 'a\n', 'ü', 'x'.repeat(257)], cursor],
    [parseWait, 'wait', ['31', '30.1', '-1', 'x', ''], 'wait must be a number from 0 to 30'],
    [
      parseDays,
      'from',
      ['1969-12-31', '2026-02-30', '2026-3-4', '20260304', '', 'today', 20260304, null],
      aDay('from'),
    ],
    [parseDays, 'to', ['2026-03-04T00:00:00Z', '2026-03-04T00:00Z', ' 2026-03-04', '٢٠٢٦-٠٣-٠٤'], aDay('to')],
    [parseDays, 'to', [['2026-03-04', '2026-03-05']], `to ${once}`],
    [parseView, 'view', ['x', '', 'FULL'], 'view must be one of full, reduced'],
    [parseStats, 'other', ['x'], 'engine or path is required'],
    [parseStats, 'engine', [''], 'engine must be one of video, audio, media'],
    [parseStats, 'engine', [['video', 'audio']], `engine ${once}`],
    [parseStats, 'engine', ['video\u0000', 'video\n', 'x'.repeat(257)], `engine ${control}`],
    [parseStats, 'path', ['\ud800', 'x'.repeat(257)], `path ${control}`],
  ];
  for (const [parse, name, values, rest] of refused) {
    for (const value of values) {
      it(`${parse.name} refuses the ${name} ${JSON.stringify(value).slice(0, 20)}`, () =>
        expect(parse({ [name]: value })).to.include({ ok: false, sentence: `Bad Request: ${rest}` }));
    }
  }

  it('parseStats refuses an unknown engine as not_found and a malformed one as bad_request', () => {
    expect(parseStats({ engine: 'nope' })).to.include({ code: 'not_found', sentence: 'Not Found' });
    expect(parseStats({ engine: 'a\u0000' })).to.include({ code: 'bad_request' });
  });
});

describe('parseJobId', () => {
  const id = '0b7c9a52-1f3e-4d6a-8c21-9e5f70ab34cd';
  const unknown = '00000000-0000-4000-8000-000000000000';
  for (const good of [id, unknown, id.toUpperCase()]) {
    it(`reads ${good} in lower case`, () =>
      expect(parseJobId(good)).to.deep.equal({ ok: true, jobId: good.toLowerCase() }));
  }

  const wrong = [
    '',
    'x',
    '123',
    `${id}a`,
    id.slice(0, -1),
    '\u0000',
    '../..',
    id.replaceAll('-', ''),
    "1'--",
    '__proto__',
  ];
  for (const text of [
    ...wrong,
    `${id}\r\n`,
    `${id}\n`,
    ` ${id}`,
    `{${id}}`,
    id.replace('0', 'g'),
    id.replace('0', '٠'),
  ]) {
    it(`refuses ${JSON.stringify(text)}`, () =>
      expect(parseJobId(text)).to.deep.equal({ ok: false, sentence: 'Bad Request: id must be a UUID' }));
  }
});

describe('the schemas', () => {
  it('keep defaults, words and bounds for the OpenAPI document', () => {
    expect(creditParameters.video.video_quality.schema).to.deep.include({
      type: 'string',
      enum: ['best', '1080p', '720p', '480p', '360p'],
      default: 'best',
    });
    expect(creditParameters.audio.max_duration.schema).to.include({
      type: 'number',
      exclusiveMinimum: 0,
      maximum: 86400,
    });
    expect(creditParameters.video.query.schema).to.include({ type: 'string', format: 'uri', maxLength: 8192 });
    expect(creditParameters.video.query.required).to.equal(true);
    expect(creditParameters.video.webhook_url.required).to.equal(false);
    expect(creditParameters.video.query.schema.examples).to.deep.equal(['https://example.com/film.mp4']);
    expect(creditParameters.video.webhook_url.schema).not.to.have.property('examples');
    expect(historyParameters.from.schema).to.deep.include({ type: 'string', format: 'date', examples: ['2026-03-04'] });
    expect(globalParameters.fields.schema).to.include({ type: 'string', maxLength: 2048 });
    expect(globalParameters.soft_fail.schema).to.include({ type: 'boolean', default: false });
    expect(listParameters.limit.schema).to.include({ type: 'integer', minimum: 1, maximum: 100, default: 20 });
    expect(listParameters.status.schema).not.to.have.property('default');
    expect(jobParameters.id.schema).to.include({ type: 'string', format: 'uuid' });
  });

  for (const [what, { schema }, fitting, wrong] of [
    ['a day', historyParameters.from, ['1970-01-01', '2026-03-04', '2999-12-31'], ['1969-12-31', '2026-3-4', '']],
    ['an engine', statsParameters.engine, ['video', '', 'ü'], ['video\u0000', 'a\nb', '\u0085']],
  ] as const) {
    it(`tell the pattern of ${what}`, () => {
      const pattern = new RegExp(String(schema.pattern));
      expect([...fitting, ...wrong].filter((text) => pattern.test(text))).to.deep.equal(fitting);
    });
  }

  it('describe every parameter and say the same as JSON', () => {
    const free = [statsParameters, listParameters, pollParameters, usageParameters, historyParameters, jobParameters];
    const tables = [...Object.values(creditParameters), globalParameters, ...free];
    for (const { schema } of tables.flatMap((table) => Object.values(table))) {
      expect(schema.description)
        .to.be.a('string')
        .that.matches(/^[A-Z].+\.$/);
      expect(JSON.parse(JSON.stringify(schema))).to.deep.equal(schema);
    }
  });
});

describe('A parameter', () => {
  const ajv = new Ajv({ formats: { uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i } });
  const limits = fc.record({ minimum: fc.integer(), maximum: fc.integer() }, { requiredKeys: [] });
  const pattern = fc.constantFrom('^[!-~]([ -~]*[!-~])?$', '^\\d{1,4}$', '^[^\\u0000-\\u001f\\ud800-\\udfff]*$');
  const kinds: Readonly<Record<string, fc.Arbitrary<Parameter>>> = {
    'a choice': fc.array(fc.string(), { minLength: 1 }).map((allowed) => choice('', [...new Set(allowed)], undefined)),
    'a flag': fc.constant(flag('')),
    'a number': limits.map((each) => number('', each, undefined)),
    'a number above another': fc.integer().map((each) => number('', { exclusiveMinimum: each }, undefined)),
    'a whole number': limits.map((each) => number('', { ...each, type: 'integer' }, undefined)),
    'a text of limited length': fc
      .record({ minLength: fc.integer({ min: 0, max: 2 }), maxLength: fc.integer({ min: 2, max: 4 }) })
      .map((each) => text('', each, '')),
    'a text with a pattern': pattern.map((each) => text('', { pattern: each }, '')),
    'a UUID': fc.constant(text('', { format: 'uuid' }, '')),
  };
  for (const [name, kind] of Object.entries(kinds)) {
    it(`takes as ${name} exactly what its schema in the OpenAPI document allows`, () => {
      const drawn = kind.chain((parameter) => {
        const { enum: allowed = [''], minimum = 0, maximum = 0, exclusiveMinimum = 0 } = parameter.schema as Limits;
        const edges = [minimum, maximum, exclusiveMinimum].flatMap((each) => [each, each + 0.5, each + 1, each - 1]);
        const letter = fc.constantFrom('a', ' ', '7', '\u{1f600}', '\ud800', '\u0001');
        const near = fc.string({ unit: letter, maxLength: 6 });
        const texts = fc.oneof({ weight: 8, arbitrary: near }, fc.uuid(), fc.constantFrom(...allowed));
        const likely = parameter.schema.type === 'string' ? texts : fc.constantFrom(...edges);
        return fc.tuple(fc.constant(parameter), fc.oneof({ weight: 3, arbitrary: likely }, fc.anything()));
      });
      const agree = ([{ schema, read }, given]: [Parameter, unknown]) => {
        // What is spelled in another way is read before it is judged.
        fc.pre(!(schema.type !== 'string' && typeof given === 'string'));
        fc.pre(!(schema.type === 'boolean' && (given === 0 || given === 1)));
        const { default: _, ...judged } = schema;
        expect(read(given, []).ok).to.equal(ajv.validate(judged, given));
      };
      fc.assert(fc.property(drawn, agree));
    });
  }
});
