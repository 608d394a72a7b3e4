import { expect } from 'chai';
import fc from 'fast-check';
import { exceptions as exceptionList } from '../../src/base/settings/kinds.ts';
import { judgeUrl, judgeWebhookUrl, receiverOf } from '../../src/model/public-address.ts';

const notUrl = 'must be an http or https URL';
const notPublicAddress = 'must be a URL with a public address';
const notPublicName = 'must be a URL with a public host name';

/** The href of an accepted URL, or the sentence of a refused one. */
function judge(text: string, exceptions = ''): string {
  const judged = judgeUrl(text, read(exceptions));
  return judged.ok ? judged.href : judged.sentence;
}

function read(exceptions: string) {
  const found = exceptionList.read(exceptions);
  if (!found) throw new Error(`no exceptions: ${exceptions}`);
  return found;
}

describe('judgeUrl', () => {
  const accepted: [text: string, href: string][] = [
    ['https://example.com/a.mp4', 'https://example.com/a.mp4'],
    ['http://example.com:8080/a.mp4?b=c&d', 'http://example.com:8080/a.mp4?b=c&d'],
    ['HTTP://EXAMPLE.com:80/A', 'http://example.com/A'],
    [' https://example.com/a b ', 'https://example.com/a%20b'],
    ['https://example.com/#t=5', 'https://example.com/#t=5'],
    ['https://example.com/#!/video/ü?a=b#c', 'https://example.com/#!/video/%C3%BC?a=b#c'],
    ['https://example.com/a#', 'https://example.com/a'],
    ['https://example.com/a#__youtubedl_smuggle={"referer":"x"}', 'https://example.com/a'],
    ['https://example.com/a#!/b#__youtubedl_smuggle=x', 'https://example.com/a'],
    ['https://example.com/a#b&__YouTubeDL_Smuggle=x', 'https://example.com/a'],
    ['https://example.com/a#__youtubedl%5Fsmuggle=x', 'https://example.com/a'],
    ['https://example.com/a#%5f_youtubedl_%2573muggle=x', 'https://example.com/a'],
    ['https://example.com./', 'https://example.com./'],
    ['https://bücher.example/', 'https://xn--bcher-kva.example/'],
    ['http://no-such-name.invalid/a.mp4', 'http://no-such-name.invalid/a.mp4'],
    ['https://internal.example.com/', 'https://internal.example.com/'],
    ['https://notlocalhost.com/', 'https://notlocalhost.com/'],
    // URLs within a URL, as archives and proxies have them, are judged by nobody here.
    ['https://example.com/web/http://user@10.0.0.1/', 'https://example.com/web/http://user@10.0.0.1/'],
    ['https://example.com/?of=http:10.0.0.1', 'https://example.com/?of=http:10.0.0.1'],
    ['https://example.com/?of=http://%31.example/', 'https://example.com/?of=http://%31.example/'],
    ['http://8.8.8.8/', 'http://8.8.8.8/'],
    ['http://134744072/', 'http://8.8.8.8/'],
    ['http://[2606:4700::1111]/', 'http://[2606:4700::1111]/'],
    ['http://[::ffff:8.8.8.8]/', 'http://[::ffff:808:808]/'],
  ];
  for (const [text, href] of accepted) it(`hands ${text} on as ${href}`, () => expect(judge(text)).to.equal(href));

  const noUrls =
    `cats|ytsearch1:cats|ytsearch:cats|example.com/a.mp4|//example.com/a.mp4|/etc/passwd|ftp://example.com/a.mp4
    |file:///etc/passwd|data:text/plain,hi|javascript:alert(1)|rtsp://example.com/a|blob:https://example.com/1
    |-i /etc/passwd|--exec=id|http://example.com:99999/|http://exa mple.com/|http://%ZZ/|http://256.1.1.1/|http://a.0x4/|http://[::1/
    |http://[fe80::1%25eth0]/`.split(/\s*\|/);
  for (const text of [...noUrls, '', '   ', '\t', '\\\\example.com\\a']) {
    it(`refuses ${JSON.stringify(text)} as no URL`, () => expect(judge(text)).to.equal(notUrl));
  }

  for (const text of [
    'https://user:pass@example.com/',
    'https://user@example.com/',
    'https://:pass@example.com/',
    'https://@example.com/',
    'https://:@example.com/',
    'https://a@b@example.com/',
    'https://example.com:80@8.8.8.8/',
  ]) {
    it(`refuses ${text} for its user name or password`, () =>
      expect(judge(text)).to.equal('must be a URL without a user name or password'));
  }

  for (const host of ['a..com', '.com', 'localhost..', 'example.com..']) {
    it(`refuses the odd name ${host}`, () =>
      expect(judge(`http://${host}/`)).to.equal('must be a URL with a valid host name'));
  }

  it('accepts 8192 characters and refuses one more, also when only the serialised URL is too long', () => {
    const start = 'https://example.com/';
    const sentence = 'must be a URL of at most 8192 characters';
    expect(judge(start.padEnd(8192, 'a'))).to.have.length(8192);
    expect(judge(start.padEnd(8193, 'a'))).to.equal(sentence);
    expect(judge('https://example.com?'.padEnd(8192, 'a')), 'a bare host, which gets a slash').to.have.length(8193);
    expect(judge('https://example.com/ '.padEnd(8190, 'a')), 'a blank, which gets two more').to.have.length(8192);
    expect(judge('https://example.com/ '.padEnd(8192, 'a'))).to.equal(sentence);
    expect(judge(start.padEnd(3000, 'ü'))).to.equal(sentence);
    expect(judge(`${start}#`.padEnd(8192, 'a'))).to.have.length(8192);
    expect(judge(`${start}#`.padEnd(8193, 'a'))).to.equal(sentence);
    expect(judge(`${start}#`.padEnd(3000, 'ü'))).to.equal(sentence);
  });
});

describe('judgeUrl of addresses that are not public', () => {
  const hosts =
    `127.0.0.1 127.1 127.0.0.1. 0x7f.1 0x7f000001 2130706433 0177.0.0.1 １２７.０.０.１ 127。0。0。1 %31%32%37.0.0.1
    [::1] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [::] 0.0.0.0 0 0.1.2.3 10.0.0.1 012.0.0.1 0xa000001 167772161
    10.255.255.255 [::ffff:10.0.0.1] 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1 100.100.100.200 100.127.255.255
    192.0.0.170 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1
    255.255.255.255 168.63.129.16 [fc00::1] [fd00:ec2::254] [fdff::1] [fe80::1] [febf::1] [fec0::1] [ff02::1] [64:ff9b::808:808]
    [64:ff9b:1::1] [100::1] [2001::1] [2001:0:4136:e378:8000:63bf:3fff:fdd2] [2001:2::1] [2001:10::1] [2001:db8::1] [2002:7f00:1::]
    [3fff::1] [4000::1] [5f00::1] [8000::1]`.split(/\s+/);
  for (const host of hosts) {
    it(`D28: refuses ${host}`, () => expect(judge(`http://${host}/`)).to.equal(notPublicAddress));
  }

  const neighbours =
    `1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 168.63.129.15 168.63.129.17
    169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0
    223.255.255.255 [2000::1] [2001:200::1] [2001:4860::8888] [2001:db7::1] [2001:db9::1] [2003::1] [3ffe::1] [3fff:1000::1]`.split(
      /\s+/,
    );
  for (const host of neighbours) {
    it(`accepts ${host}, just outside a refused network`, () =>
      expect(judge(`http://${host}/`)).to.equal(`http://${host}/`));
  }
});

describe('judgeUrl of local names', () => {
  const hosts =
    `localhost LOCALHOST localhost. a.localhost a.b.localhost. ⓛocalhost loc%61lhost printer.local printer.local. a.internal
    metadata.google.internal redis.trawl.svc redis.trawl.svc.cluster.local redis internal a router.lan nas.home nas.home.arpa home.arpa nas.HOME.arpa.
    a.localdomain wiki.corp wiki.intranet db.private`.split(/\s+/);
  for (const host of hosts) {
    it(`D28: refuses ${host}`, () => expect(judge(`http://${host}/`)).to.equal(notPublicName));
  }
});

describe('judgeUrl with exceptions', () => {
  const rows: [text: string, exceptions: string, said: string][] = [
    ['http://127.0.0.1:9000/a', '127.0.0.1:*', 'http://127.0.0.1:9000/a'],
    ['http://2130706433:9000/', '127.0.0.1:*', 'http://127.0.0.1:9000/'],
    ['http://[::ffff:127.0.0.1]/', '127.0.0.1:*', 'http://[::ffff:7f00:1]/'],
    ['http://127.0.0.2/', '127.0.0.1:*', notPublicAddress],
    ['http://[::1]/', '127.0.0.1:*', notPublicAddress],
    ['http://0.0.0.0/', '127.0.0.1:*', notPublicAddress],
    ['http://10.0.0.1/', '127.0.0.1:*', notPublicAddress],
    ['http://127.0.0.1:9000/', '127.0.0.1:9000', 'http://127.0.0.1:9000/'],
    ['http://127.0.0.1:9001/', '127.0.0.1:9000', notPublicAddress],
    ['http://127.0.0.1/', '127.0.0.1:80', 'http://127.0.0.1/'],
    ['https://127.0.0.1/', '127.0.0.1:80', notPublicAddress],
    ['https://127.0.0.1/', '127.0.0.1:443', 'https://127.0.0.1/'],
    ['http://10.1.2.3/', '192.168.0.0/16:*,10.0.0.0/8:80', 'http://10.1.2.3/'],
    ['http://[fd00::5]:8443/', '[fd00::/8]:8443', 'http://[fd00::5]:8443/'],
    ['http://[fe80::5]:8443/', '[fd00::/8]:8443', notPublicAddress],
    ['http://127.0.0.1/', '[::/0]:*', notPublicAddress],
    ['http://[::1]/', '0.0.0.0/0:*', notPublicAddress],
    ['http://8.8.8.8:81/', '10.0.0.1:*', 'http://8.8.8.8:81/'],
    ['http://user@127.0.0.1/', '127.0.0.1:*', 'must be a URL without a user name or password'],
    ['ftp://127.0.0.1/', '127.0.0.1:*', notUrl],
    ['http://localhost:9000/', '127.0.0.1:*', 'http://localhost:9000/'],
    ['http://a.localhost./', '127.0.0.1:*', 'http://a.localhost./'],
    ['http://localhost/', '[::1]:*', 'http://localhost/'],
    ['http://localhost/', '127.0.0.0/8:*', 'http://localhost/'],
    ['http://localhost/', '127.0.0.5:*', 'http://localhost/'],
    ['http://localhost/', '0.0.0.0/0:*', 'http://localhost/'],
    ['http://localhost:9000/', '127.0.0.1:9000', 'http://localhost:9000/'],
    ['http://localhost:9001/', '127.0.0.1:9000', notPublicName],
    ['http://localhost/', '10.0.0.0/8:*', notPublicName],
    ['http://printer.local/', '127.0.0.1:*', notPublicName],
    ['http://redis.trawl.svc/', '10.0.0.0/8:*', notPublicName],
  ];
  for (const [text, exceptions, said] of rows) {
    it(`D67: answers ${said} to ${text} with ${exceptions}`, () => expect(judge(text, exceptions)).to.equal(said));
  }
});

describe('judgeWebhookUrl', () => {
  it('accepts 2048 characters and refuses one more', () => {
    const start = 'https://example.com/';
    expect(judgeWebhookUrl(start.padEnd(2048, 'a'), []).ok).to.equal(true);
    expect(judgeWebhookUrl(start.padEnd(2049, 'a'), [])).to.deep.equal({
      ok: false,
      sentence: 'must be a URL of at most 2048 characters',
    });
  });

  it('judges hosts as judgeUrl does, and drops the fragment, which no request sends', () => {
    expect(judgeWebhookUrl('http://10.0.0.1/hook', [])).to.deep.equal({
      ok: false,
      sentence: notPublicAddress,
    });
    expect(judgeWebhookUrl('http://10.0.0.1/hook#part', read('10.0.0.1:80'))).to.deep.equal({
      ok: true,
      href: 'http://10.0.0.1/hook',
    });
  });
});

describe('every URL', () => {
  it('is refused, or handed on as an http or https URL without user and orders to yt-dlp that is read as itself', () => {
    const hosts = fc.oneof(
      fc.domain(),
      fc.ipV4(),
      fc.ipV4Extended(),
      fc.ipV6().map((v6) => `[${v6}]`),
      fc.string(),
    );
    const texts = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.webUrl({ withFragments: true, withQueryParameters: true }),
      fc.string().map((rest) => `http://example.com/#__youtubedl_smuggle${rest}`),
      fc.tuple(fc.constantFrom('http://', 'https://', 'a@', ''), hosts, fc.string()).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(texts, (text) => {
        const judged = judgeUrl(text, []);
        if (!judged.ok) return;
        const url = new URL(judged.href);
        expect(judged.href).to.match(/^https?:\/\/[^@/]+\/\S*$/);
        expect([url.username, url.password]).to.deep.equal(['', '']);
        expect(url.hash).to.not.include('__youtubedl_smuggle');
        expect(judgeUrl(judged.href, [])).to.deep.equal(judged);
      }),
    );
  });

  it('with an address inside a refused network is refused, in each notation of it', () => {
    const inside = fc.integer({ min: 0, max: 2 ** 24 - 1 }).map((low) => 10 * 2 ** 24 + low);
    fc.assert(
      fc.property(inside, (number) => {
        const octets = [24, 16, 8, 0].map((shift) => (number >>> shift) & 255);
        const hex = [number >>> 16, number & 65535].map((half) => half.toString(16)).join(':');
        const spellings = [
          octets.join('.'),
          String(number),
          `0x${number.toString(16)}`,
          octets.map((octet) => `0${octet.toString(8)}`).join('.'),
          `[::ffff:${hex}]`,
        ];
        for (const host of spellings) expect(judge(`http://${host}/`), host).to.equal(notPublicAddress);
      }),
    );
  });
});

describe('the receiver of a webhook', () => {
  const url = 'https://hooks.example.com/done?job=1';
  const receiver = receiverOf('aaa', url);
  it('is its account, its host and, behind the only slash, a hash of eight characters', () =>
    expect(receiver).to.match(/^aaa@hooks\.example\.com\/[\w-]{8}$/));
  it('is another one for another account', () => expect(receiverOf('bbb', url)).to.not.equal(receiver));
  for (const [other, isSame] of [
    ['https://hooks.example.com/done?job=2', true],
    ['https://hooks.example.com/done/2', false],
    ['https://hooks.example.com:8443/done?job=1', false],
    ['https://example.com/done?job=1', false],
  ] as const) {
    it(`${isSame ? 'is' : 'is not'} the same for ${other}`, () =>
      expect(receiverOf('aaa', other) === receiver).to.equal(isSame));
  }
});
