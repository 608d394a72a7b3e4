import { expect } from 'chai';
import { address as kind } from '../../src/base/settings/kinds.ts';

describe('An address setting', () => {
  const rows: readonly [string, unknown][] = [
    ['unix:/run/x', { path: '/run/x' }],
    ['http://egress:4750', { host: 'egress', port: 4750 }],
    ['http://[::1]:80', { host: '::1', port: 80 }],
    ['unix:x', undefined],
    ['https://a.example', { host: 'a.example', port: 443, tls: { caFile: null } }],
    ['https://egress:4750', { host: 'egress', port: 4750, tls: { caFile: null } }],
    ['https://u:p@a.example', undefined],
    ['ftp://a.example', undefined],
    ['http://u:p@a.example', undefined],
    ['http://a.example/x', undefined],
    ['', undefined],
  ];
  for (const [text, address] of rows) {
    it(`${JSON.stringify(text)} is ${address ? `read as ${JSON.stringify(address)}` : 'refused'}`, () =>
      expect(kind.read(text)).to.deep.equal(address));
  }
});
