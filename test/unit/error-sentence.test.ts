import { expect } from 'chai';
import { ConfigError } from '../../src/base/config.ts';
import { sentenceOf } from '../../src/base/error-sentence.ts';
import { refuse } from '../../src/base/errors.ts';

const failed = (message: string, fields: object) => Object.assign(new Error(message), fields);

describe('the error of a program that does not start', () => {
  const rows: [string, unknown, string][] = [
    ['a refusal', refuse('in_use', 'Another one runs'), 'Another one runs'],
    ['a list of wrong settings, a line each,', new ConfigError(['One.', 'Two.']), 'One.\nTwo.'],
    ['a plain Error', new Error('Install flock'), 'Install flock'],
    [
      'a port that is taken',
      failed('listen', { code: 'EADDRINUSE', port: 80 }),
      'The port 80 is taken by another program',
    ],
    ['an address of another machine', failed('not available', { code: 'EADDRNOTAVAIL' }), 'not available'],
    [
      'a host that no name service knows',
      failed('getaddrinfo ENOTFOUND films', { code: 'ENOTFOUND', hostname: 'films' }),
      'The host films cannot be found',
    ],
    [
      'an option that is not known',
      failed('Unknown option', { code: 'ERR_PARSE_ARGS_UNKNOWN_OPTION' }),
      'Unknown option',
    ],
    [
      'a file that stands where a folder should',
      failed("ENOTDIR: not a directory, mkdir '/f/x'", { code: 'ENOTDIR', path: '/f/x' }),
      "ENOTDIR: not a directory, mkdir '/f/x'",
    ],
    ['a thrown text', 'gone', 'gone'],
  ];
  for (const [title, error, sentence] of rows) {
    it(`is printed as a sentence for ${title}`, () => expect(sentenceOf(error)).to.equal(sentence));
  }

  it('keeps its stack when nobody expected it', () => {
    for (const error of [new TypeError('x'), failed('x', { code: 'ECONNRESET' })]) {
      expect(sentenceOf(error)).to.match(/x\n +at /);
    }
  });
});
