import { expect } from 'chai';
import type { Network } from '../../src/base/settings/kinds.ts';
import { isInRange, isPrivateAddress, networkOf, readAddress, readRange } from '../../src/model/public-address.ts';

const parsed = (text: string) => readAddress(text)!;

describe('addresses of own networks', () => {
  const rows: [addresses: string, isPrivate: boolean][] = [
    ['127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1', true],
    ['10.0.0.1 172.16.0.1 172.31.255.255 192.168.255.255 ::ffff:10.0.0.1', true],
    ['169.254.169.254 fe80::1', true],
    ['100.64.0.1 100.127.255.255', true],
    ['fc00::1 fdff::1', true],
    ['8.8.8.8 172.32.0.1 100.128.0.1 2600::1 192.0.2.1 224.0.0.1 ::ffff:8.8.8.8', false],
  ];
  for (const [addresses, isPrivate] of rows) {
    it(`${isPrivate ? 'have' : 'do not have'} ${addresses}`, () => {
      for (const address of addresses.split(' '))
        expect(isPrivateAddress(parsed(address)), address).to.equal(isPrivate);
    });
  }
});

describe('ranges of addresses', () => {
  const v4 = (address: string, prefix: number): Network => ({ family: 'ipv4', address, prefix });
  const v6 = (address: string, prefix: number): Network => ({ family: 'ipv6', address, prefix });
  const rows: [range: Network, inside: string, outside: string][] = [
    [v4('10.0.0.0', 8), '10.255.255.255 ::ffff:10.1.2.3', '11.0.0.0 a00::'],
    [v4('10.1.2.3', 32), '10.1.2.3', '10.1.2.4'],
    [v6('2001:db8::', 32), '2001:db8:ffff::1', '2001:db9::'],
    [v6('2001:db8::', 120), '2001:db8::ff', '2001:db8::100 2001:db9::'],
    [v6('::ffff:10.0.0.0', 104), '10.255.255.255 ::ffff:10.1.2.3', '11.0.0.0'],
    [v6('::ffff:0.0.0.0', 96), '8.8.8.8 ::ffff:10.1.2.3', '::1 2600::1'],
    [v6('::ffff:10.0.0.0', 95), '::fffe:1.2.3.4', '2600::1'],
  ];
  for (const [range, inside, outside] of rows) {
    it(`${range.address}/${range.prefix} has ${inside}, and not ${outside}`, () => {
      const has = (text: string) => isInRange(readRange(range), parsed(text));
      for (const text of inside.split(' ')) expect(has(text), text).to.equal(true);
      for (const text of outside.split(' ')) expect(has(text), text).to.equal(false);
    });
  }

  it('have an address at their beginning', () => {
    expect(() => readRange(v4('10.0.0', 8))).to.throw('10.0.0 is no address');
  });
});

describe('failed authentications', () => {
  const rows: [address: string, blamed: string][] = [
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2::/64'],
    ['2001:db8:1:3::', '2001:db8:1:3::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
  ];
  for (const [address, blamed] of rows) {
    it(`of ${address} count for ${blamed}`, () => expect(networkOf(parsed(address))).to.equal(blamed));
  }
});
