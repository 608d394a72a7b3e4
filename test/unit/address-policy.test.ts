import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { egressVerdicts } from '../../src/base/egress-verdict.ts';
import { exceptions, networks } from '../../src/base/settings/kinds.ts';
import { makePolicy, type PolicyOptions } from '../../src/egress/address-policy.ts';
import { isLocalName, isSameAddress, judgeUrl } from '../../src/model/public-address.ts';

interface Rules {
  readonly allow?: string;
  readonly deny?: string;
  readonly ports?: readonly number[];
  readonly own?: readonly string[];
}

function policyOf({ allow = '', deny = '', ports = [80, 443], own = [] }: Rules = {}) {
  const options: Partial<PolicyOptions> = { allow: exceptions.read(allow), deny: networks.read(deny) };
  if (!options.allow || !options.deny) throw new Error(`not a rule: ${allow} ${deny}`);
  return makePolicy({ ports, ownAddresses: () => own, ...options } as PolicyOptions);
}

/** The verdict on a URL, or the addresses that are open without asking a resolver. */
function judge(text: string, rules?: Rules): string {
  const url = new URL(text);
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  const judged = policyOf(rules).judgeHost(url.hostname, port);
  return judged.verdict === 'open' ? judged.addresses.join(' ') : judged.verdict;
}

const words = (text: string) => text.trim().split(/\s+/);

describe('addresses that are not public', () => {
  const groups: Record<string, string> = {
    loopback: `127.0.0.1 127.1 127.0.1 127.0.0.1. 127.255.255.254 0x7f.1 0x7f.0.0.1 0x7f000001 0X7F000001 2130706433 017700000001
      0177.0.0.1 0177.0x0.0.01 １２７.０.０.１ 127。0。0。1 ①②⑦.0.0.1 %31%32%37.0.0.1 [::1] [0:0:0:0:0:0:0:1] [0000::0001]`,
    'IPv4 inside IPv6': `[::ffff:127.0.0.1] [::ffff:7f00:1] [::FFFF:127.0.0.1] [0:0:0:0:0:ffff:7f00:0001] [::ffff:10.0.0.1] [::ffff:a9fe:a9fe]
      [::ffff:168.63.129.16] [::127.0.0.1] [::7f00:1] [::10.0.0.1] [::8.8.8.8] [::ffff:0:127.0.0.1] [::ffff:0:8.8.8.8]`,
    '6to4': '[2002:7f00:1::] [2002:a00:1::1] [2002:a9fe:a9fe::] [2002:808:808::]',
    NAT64:
      '[64:ff9b::7f00:1] [64:ff9b::10.0.0.1] [64:ff9b::169.254.169.254] [64:ff9b::808:808] [64:ff9b:1::1] [64:ff9b:1:ffff::]',
    Teredo: '[2001::1] [2001:0:4136:e378:8000:63bf:3fff:fdd2] [2001:0:ffff::]',
    'unspecified and this network': '0.0.0.0 0 0.1.2.3 0.255.255.255 [::] [::2]',
    private:
      '10.0.0.0 10.255.255.255 012.0.0.1 0xa000001 167772161 172.16.0.1 172.31.255.255 192.168.0.0 192.168.255.255',
    'link-local': '169.254.0.0 169.254.169.254 2852039166 0xa9fea9fe 169.254.255.255 [fe80::1] [febf:ffff::]',
    'carrier-grade NAT': '100.64.0.0 100.100.100.200 100.127.255.255',
    'unique local': '[fc00::] [fc00::1] [fd00:ec2::254] [fdff:ffff::]',
    'site-local': '[fec0::1] [feff::1]',
    multicast: '224.0.0.1 224.0.0.251 239.255.255.255 [ff00::] [ff02::1] [ffff::]',
    'reserved and broadcast': '240.0.0.0 255.255.255.254 255.255.255.255 4294967295',
    documentation: '192.0.2.1 198.51.100.1 203.0.113.1 [2001:db8::] [2001:db8:ffff::1] [3fff::1] [3fff:fff::]',
    benchmarking: '198.18.0.0 198.19.255.255 [2001:2::1]',
    'protocol assignments':
      '192.0.0.1 192.0.0.170 192.88.99.1 192.31.196.1 192.52.193.1 192.175.48.1 [2001:1::1] [2001:3::1] [2001:4:112::1]',
    'segment routing, discard, ORCHID and drones':
      '[5f00::1] [100::1] [2001:10::1] [2001:20::1] [2001:30::1] [2620:4f:8000::1]',
    'outside 2000::/3': '[1::1] [400::1] [4000::1] [8000::1] [a000::] [e000::1] [fe00::1]',
    'the host of an Azure machine': '168.63.129.16 2822734096 0xa8.0x3f.0x81.0x10',
  };
  for (const [group, hosts] of Object.entries(groups)) {
    for (const host of words(hosts)) {
      it(`${host} is refused: ${group}`, () => expect(judge(`http://${host}/`)).to.equal('refused_address'));
    }
  }

  it('anything but an address among the answers of a resolver is refused', () => {
    for (const odd of ['', 'example.com', '8.8.8.8:80', '0177.0.0.1', '127.1', '8.8.8.8 ', '[2600::1]']) {
      expect(policyOf().judgeAddresses('example.com', [odd], 80), odd).to.equal('refused_address');
    }
  });
});

describe('addresses that are public', () => {
  const hosts = `1.0.0.0 8.8.8.8 134744072 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 168.63.129.15
    168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255
    198.20.0.0 223.255.255.255 [2000::1] [2001:200::1] [2001:4860::8888] [2001:db7::1] [2001:db9::1] [2003::1] [2606:4700::1111]
    [3ffe::1] [3fff:1000::1]`;
  for (const host of words(hosts)) {
    it(`D90: ${host} is open on ports 80 and 443 and refused on 8080`, () => {
      const address = new URL(`http://${host}/`).hostname.replace(/[[\]]/g, '');
      expect(judge(`http://${host}/`)).to.equal(address);
      expect(judge(`https://${host}/`)).to.equal(address);
      expect(judge(`http://${host}:8080/`)).to.equal('refused_port');
    });
  }

  it('a public IPv4 address inside IPv6 is open in its IPv6 spelling', () => {
    expect(judge('http://[::ffff:8.8.8.8]/')).to.equal('::ffff:808:808');
  });
});

describe('host names', () => {
  const local = `localhost LOCALHOST localhost. a.localhost a.b.localhost. ⓛocalhost loc%61lhost printer.local printer.local. a.internal A.INTERNAL
    metadata.google.internal metadata.google.internal. redis.trawl.svc redis.trawl.svc. redis.trawl.svc.cluster.local redis metadata internal a com.
    a..com .com example.com.. localhost.. router.lan nas.home nas.home.arpa a.localdomain wiki.corp wiki.intranet db.private`;
  for (const host of words(local)) {
    it(`${host} is refused as a local name, with a public address too`, () => {
      expect(judge(`http://${host}/`)).to.equal('refused_name');
      expect(judge(`http://${host}:8080/`)).to.equal('refused_name');
      const name = new URL(`http://${host}/`).hostname;
      expect(policyOf().judgeAddresses(name, ['8.8.8.8'], 80), 'with a public address').to.equal('refused_name');
    });
  }

  const others = `example.com example.com. EXAMPLE.com bücher.example localhost.example.com internal.example.com mylocal notlocalhost.com
    svc.example.com local.com _dmarc.example.com 1.2.3.4.com lan.example.com myhome.arpa home.arpa.example.com`;
  for (const host of words(others).filter((name) => name !== 'mylocal')) {
    it(`${host} is resolved on ports 80 and 443 and refused on 8080`, () => {
      expect(judge(`http://${host}/`)).to.equal('resolve');
      expect(judge(`http://${host}:443/`)).to.equal('resolve');
      expect(judge(`http://${host}:8080/`)).to.equal('refused_port');
    });
  }

  it('a name is local by its last label alone', () => {
    expect(['mylocal', 'a.local', 'x.svc', ''].map(isLocalName)).to.deep.equal([true, true, true, true]);
    expect(['a.locals', 'local.a'].map(isLocalName)).to.deep.equal([false, false]);
  });
});

describe('the addresses of a name', () => {
  const rows: [addresses: string, port: number, verdict: string, rules?: Rules][] = [
    ['8.8.8.8', 80, 'open'],
    ['8.8.8.8 2606:4700::1111 1.1.1.1', 443, 'open'],
    ['8.8.8.8', 8080, 'refused_port'],
    ['127.0.0.1', 80, 'refused_address'],
    ['8.8.8.8 10.0.0.1', 80, 'refused_address'],
    ['10.0.0.1 8.8.8.8', 80, 'refused_address'],
    ['8.8.8.8 1.1.1.1 ::1', 80, 'refused_address'],
    ['8.8.8.8 ::ffff:10.0.0.1', 80, 'refused_address'],
    ['8.8.8.8 fe80::1%eth0', 80, 'refused_address'],
    ['', 80, 'failed_dns'],
    ['8.8.8.8', 81, 'open', { ports: [81] }],
    ['8.8.8.8', 80, 'refused_port', { ports: [81] }],
    ['8.8.8.8', 80, 'refused_address', { deny: '8.8.8.0/24' }],
    ['8.8.8.8 1.1.1.1', 80, 'refused_address', { deny: '1.1.1.1' }],
    ['2606:4700::1111', 80, 'refused_address', { deny: '2606:4700::/32' }],
    ['8.8.8.8', 80, 'refused_address', { deny: '::ffff:8.8.8.8' }],
    ['8.8.8.8', 80, 'refused_address', { deny: '::ffff:8.8.0.0/112' }],
    ['::ffff:8.8.8.8', 80, 'refused_address', { deny: '8.8.8.8' }],
    ['8.8.8.8', 80, 'open', { deny: '::/0' }],
    ['8.8.8.8 2606:4700:64::8.8.8.8', 80, 'refused_address', { deny: '2606:4700:64::/96' }],
    ['8.8.8.8 2606:4700:64::8.8.8.8', 80, 'open', { deny: '2606:4700:64::10.0.0.0/104' }],
    ['2606:4700:64::10.1.2.3', 80, 'refused_address', { deny: '2606:4700:64::10.0.0.0/104' }],
    ['8.8.8.8', 80, 'refused_address', { own: ['8.8.8.8'] }],
    ['2606:4700::1111', 80, 'refused_address', { own: ['10.0.0.1', '2606:4700:0::1111'] }],
    ['2606:4700::2222', 80, 'refused_address', { own: ['2606:4700::1111'] }],
    ['2606:4700::a:b:c:d', 443, 'refused_address', { own: ['fe80::1%eth0', '2606:4700:0::1111'] }],
    ['8.8.8.8 2606:4700::2222', 80, 'refused_address', { own: ['2606:4700::1111'] }],
    ['2606:4700:0:1::2222', 80, 'open', { own: ['2606:4700::1111'] }],
    ['2606:4700::2222', 80, 'open', { own: ['2606:4700::1111'], allow: '[2606:4700::2222]:80' }],
    ['8.8.8.9', 80, 'open', { own: ['8.8.8.8'] }],
    ['8.8.8.8', 8080, 'open', { own: ['8.8.8.8'], allow: '8.8.8.8:8080' }],
    ['10.0.0.1', 9000, 'open', { allow: '10.0.0.0/8:9000' }],
    ['10.0.0.1', 9001, 'refused_address', { allow: '10.0.0.0/8:9000' }],
    ['10.0.0.1 8.8.8.8', 443, 'open', { allow: '10.0.0.0/8:*' }],
    ['10.0.0.1 8.8.8.8', 9000, 'refused_port', { allow: '10.0.0.0/8:*' }],
    ['8.8.8.8 10.0.0.1', 9000, 'refused_address'],
    ['10.0.0.1 192.168.0.1', 443, 'refused_address', { allow: '10.0.0.0/8:*' }],
    ['192.168.0.1 10.0.0.1', 443, 'refused_address', { allow: '10.0.0.0/8:*' }],
    ['10.0.0.1', 443, 'refused_address', { allow: '10.0.0.0/8:*', deny: '10.0.0.1' }],
    ['10.0.0.2', 443, 'open', { allow: '10.0.0.0/8:*', deny: '10.0.0.1' }],
    ['169.254.169.254', 80, 'refused_address', { allow: '127.0.0.1:*,10.0.0.0/8:*' }],
    ['168.63.129.16', 80, 'open', { allow: '168.63.129.16:80' }],
    ['fd00::1', 443, 'open', { allow: '[fd00::/8]:443' }],
    ['fd00::1', 80, 'refused_address', { allow: 'fd00::/8:443' }],
    ['127.0.0.1', 5, 'open', { allow: '[::ffff:127.0.0.1]:*' }],
  ];
  for (const [addresses, port, verdict, rules] of rows) {
    it(`${addresses || 'none'} on ${port} with ${JSON.stringify(rules ?? {})}: ${verdict}`, () => {
      const list = addresses.split(' ').filter(Boolean);
      expect(policyOf(rules).judgeAddresses('example.com', list, port)).to.equal(verdict);
    });
  }
});

describe('exceptions', () => {
  const rows: [url: string, allow: string, said: string][] = [
    ['http://127.0.0.1:9000/', '127.0.0.1:*', '127.0.0.1'],
    ['http://2130706433:9000/', '127.0.0.1:*', '127.0.0.1'],
    ['http://[::ffff:127.0.0.1]:9000/', '127.0.0.1:*', '::ffff:7f00:1'],
    ['http://127.0.0.2:9000/', '127.0.0.1:*', 'refused_address'],
    ['http://[::1]:9000/', '127.0.0.1:*', 'refused_address'],
    ['http://0.0.0.0:9000/', '127.0.0.1:*', 'refused_address'],
    ['http://[::7f00:1]:9000/', '127.0.0.1:*', 'refused_address'],
    ['http://127.0.0.1:9000/', '127.0.0.1:9000', '127.0.0.1'],
    ['http://127.0.0.1:9001/', '127.0.0.1:9000', 'refused_address'],
    ['http://127.0.0.1/', '127.0.0.1:80', '127.0.0.1'],
    ['http://10.1.2.3:443/', '10.0.0.0/8:443', '10.1.2.3'],
    ['http://11.1.2.3:81/', '10.0.0.0/8:*', 'refused_port'],
    ['http://11.1.2.3:81/', '11.0.0.0/8:81', '11.1.2.3'],
    ['http://[::1]:9000/', '[::1]:*', '::1'],
    ['http://[fd00::5]:443/', '[fd00::/8]:443', 'fd00::5'],
    ['http://[fd00::5]:444/', '[fd00::/8]:443', 'refused_address'],
    ['http://localhost:9000/', '127.0.0.1:*', '127.0.0.1'],
    ['http://localhost.:9000/', '127.0.0.1:*', '127.0.0.1'],
    ['http://a.localhost:9000/', '[::1]:9000', '::1'],
    ['http://localhost:9000/', '127.0.0.0/8:*,[::1]:*', '127.0.0.1 ::1'],
    ['http://localhost:9000/', '127.0.0.1:9001', 'refused_name'],
    ['http://localhost:9000/', '127.0.0.2:*', 'refused_name'],
    ['http://source:9000/', '10.0.0.0/8:*', 'resolve'],
    ['http://source:9000/', '10.0.0.0/8:9001', 'refused_name'],
    ['http://example.com:9000/', '10.0.0.0/8:*', 'resolve'],
    ['http://example.com:9000/', '10.0.0.0/8:9001', 'refused_port'],
  ];
  for (const [url, allow, said] of rows) {
    it(`D67: ${url} with ${allow}: ${said}`, () => expect(judge(url, { allow })).to.equal(said));
  }

  it('D67: a local name is open only if every address of it is excepted', () => {
    const policy = policyOf({ allow: '10.0.0.0/8:*' });
    const judged = ['10.0.0.1', '10.0.0.1 10.0.0.2', '10.0.0.1 8.8.8.8', '8.8.8.8', '192.168.0.1'];
    expect(policy.judgeAddresses('minio.local', [], 9000), 'without any').to.equal('refused_name');
    expect(judged.map((text) => policy.judgeAddresses('minio.local', text.split(' '), 9000))).to.deep.equal([
      'open',
      'open',
      'refused_name',
      'refused_name',
      'refused_name',
    ]);
  });

  it('an address of the deny list is refused although an exception covers it', () => {
    const rules = { allow: '127.0.0.0/8:*', deny: '127.0.0.1' };
    expect(judge('http://127.0.0.1/', rules)).to.equal('refused_address');
    expect(judge('http://localhost/', rules)).to.equal('refused_name');
    expect(judge('http://127.0.0.2/', rules)).to.equal('127.0.0.2');
  });
});

describe('the policy', () => {
  const v4 = fc.ipV4();
  const v6 = fc.ipV6();

  it('refuses every literal that the API refuses', () => {
    fc.assert(
      fc.property(fc.oneof(v4, v6), (address) => {
        const url = `http://${address.includes(':') ? `[${address}]` : address}/`;
        if (!judgeUrl(url, []).ok) expect(judge(url)).to.equal('refused_address');
      }),
    );
  });

  it('gives an address the same verdict as a literal and as an answer, in every spelling', () => {
    fc.assert(
      fc.property(v4, v6, (plain, wide) => {
        const inWide = new URL(`http://[::ffff:${plain}]/`).hostname.slice(1, -1);
        const verdicts = [plain, inWide].map((address) => policyOf().judgeAddresses('example.com', [address], 80));
        expect(verdicts[1]).to.equal(verdicts[0]);
        expect(isSameAddress(plain, inWide)).to.equal(true);
        const literal = judge(`http://[${wide}]/`);
        const verdict = policyOf().judgeAddresses('example.com', [wide], 80);
        expect(verdict).to.equal(literal.startsWith('refused') ? literal : 'open');
      }),
    );
  });

  it('opens no list of addresses that it would not open one by one', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(v4, v6), { minLength: 1, maxLength: 5 }), (addresses) => {
        const policy = policyOf({ allow: '10.0.0.0/8:*' });
        const each = addresses.map((address) => policy.judgeAddresses('example.com', [address], 80));
        const open = each.every((verdict) => verdict === 'open');
        expect(policy.judgeAddresses('example.com', addresses, 80) === 'open').to.equal(open);
      }),
    );
  });

  it('finds two spellings of one address the same, and no other two texts', () => {
    expect(isSameAddress('::1', '0:0::0:1')).to.equal(true);
    for (const [one, other] of [
      ['127.0.0.1', '127.0.0.2'],
      ['::1', '127.0.0.1'],
      ['127.0.0.1', ''],
      ['127.1', '127.0.0.1'],
    ] as const) {
      expect(isSameAddress(one, other), `${one} ${other}`).to.equal(false);
    }
  });

  it('refuses an address that a DNS64 resolver made of a public IPv4 one, also beside that one', () => {
    const { judgeAddresses } = policyOf();
    for (const addresses of [['64:ff9b::808:808'], ['8.8.8.8', '64:ff9b::808:808']]) {
      expect(judgeAddresses('example.com', addresses, 443)).to.equal('refused_address');
    }
  });
});

describe('the metrics page', () => {
  it('lists every verdict of egress and no other', () => {
    const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
    const row = page.split('\n').find((line) => line.startsWith('| `verdict` |')) ?? '';
    expect(row.split('|')[2]?.match(/[a-z]+_[a-z]+|open|limited/g)).to.deep.equal([...egressVerdicts]);
  });
});
