import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIPv4 } from 'node:net';

export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

/** The subject of a certificate and its hosts: names and IPv4 addresses. */
export interface Owner {
  readonly name: string;
  readonly group?: string;
  readonly hosts?: readonly string[];
  /** 2049 unless given. */
  readonly ends?: Date;
}

/** A certificate authority. */
export interface Authority {
  readonly cert: string;
  /** Makes a key and a certificate for it, for servers and for clients. */
  issue(owner: Owner): Certificate;
}

interface Issuer {
  readonly name: Buffer;
  readonly key: KeyObject;
}

const id = {
  ecdsaWithSha256: '06082a8648ce3d040302',
  commonName: '0603550403',
  organization: '060355040a',
  subjectAltName: '0603551d11',
  basicConstraints: '0603551d13',
  extendedKeyUsage: '0603551d25',
  serverAuthentication: '06082b06010505070301',
  clientAuthentication: '06082b06010505070302',
};

/** Makes a key and a certificate for one host name that only itself vouches for, good from 2020 to 2049. */
export function makeCertificate(host: string): Certificate {
  const { privateKey, publicKey } = makeKeys();
  const owner = { name: host, hosts: [host] };
  return { key: asPem(privateKey), cert: certify(owner, publicKey, [], { name: nameOf(owner), key: privateKey }) };
}

/** Makes an authority whose own certificate nobody vouches for. */
export function makeAuthority(name: string): Authority {
  const { privateKey, publicKey } = makeKeys();
  const issuer = { name: nameOf({ name }), key: privateKey };
  const isAuthority = part(0x30, hex(id.basicConstraints), hex('0101ff'), part(0x04, hex('30030101ff')));
  const usages = part(0x30, hex(id.serverAuthentication), hex(id.clientAuthentication));
  const isForBoth = part(0x30, hex(id.extendedKeyUsage), part(0x04, usages));
  return {
    cert: certify({ name }, publicKey, [isAuthority], issuer),
    issue: (owner) => {
      const own = makeKeys();
      return { key: asPem(own.privateKey), cert: certify(owner, own.publicKey, [isForBoth], issuer) };
    },
  };
}

function makeKeys() {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
}

function asPem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

function certify(owner: Owner, publicKey: KeyObject, extensions: readonly Buffer[], issuer: Issuer): string {
  const algorithm = part(0x30, hex(id.ecdsaWithSha256));
  const hosts = (owner.hosts ?? []).map((host) =>
    isIPv4(host) ? part(0x87, Buffer.from(host.split('.').map(Number))) : part(0x82, Buffer.from(host)),
  );
  const names = part(0x30, hex(id.subjectAltName), part(0x04, part(0x30, ...hosts)));
  const all = [...extensions, ...(hosts.length > 0 ? [names] : [])];
  const certified = part(
    0x30,
    part(0xa0, part(0x02, Buffer.from([2]))),
    // A number that is not negative and has no needless zeros.
    part(0x02, Buffer.from([1]), randomBytes(15)),
    algorithm,
    issuer.name,
    part(0x30, part(0x17, Buffer.from('200101000000Z')), part(0x17, Buffer.from(utcTimeOf(owner.ends)))),
    nameOf(owner),
    publicKey.export({ type: 'spki', format: 'der' }),
    part(0xa3, part(0x30, ...all)),
  );
  const signature = part(0x03, Buffer.from([0]), sign('sha256', certified, issuer.key));
  const base64 = part(0x30, certified, algorithm, signature).toString('base64');
  return `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{1,64}/g, '$&\n')}-----END CERTIFICATE-----\n`;
}

function utcTimeOf(time = new Date('2049-12-31T23:59:59Z')): string {
  return `${time.toISOString().slice(2, 19).replaceAll(/[-T:]/g, '')}Z`;
}

function nameOf({ name, group }: Owner): Buffer {
  const one = (kind: string, text: string) => part(0x31, part(0x30, hex(kind), part(0x0c, Buffer.from(text))));
  return part(0x30, ...(group === undefined ? [] : [one(id.organization, group)]), one(id.commonName, name));
}

function hex(bytes: string): Buffer {
  return Buffer.from(bytes, 'hex');
}

/** One element of DER: its tag, its length and what is in it. */
function part(tag: number, ...inside: Buffer[]): Buffer {
  const bytes = Buffer.concat(inside);
  const size = bytes.length;
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), bytes]);
}
