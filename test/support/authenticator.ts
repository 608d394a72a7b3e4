import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/** What a client or authenticator does otherwise than the page asked. */
interface Deviation {
  readonly origin?: string;
  readonly rpId?: string;
  readonly type?: string;
  /** Flags of the authenticator: 1 present, 4 verified, 64 with a new key. */
  readonly flags?: number;
  readonly counter?: number;
}

/** A passkey in software: makes one ES256 key and signs with it, as a browser with its authenticator would. */
export interface Authenticator {
  readonly id: string;
  create(options: { readonly challenge: string }, deviation?: Deviation): object;
  sign(options: { readonly challenge: string }, deviation?: Deviation): object;
}

const [present, verified, withKey] = [1, 4, 64];

export function makeAuthenticator(url: string): Authenticator {
  const { hostname, origin } = new URL(url);
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const rawId = randomBytes(32);
  const id = rawId.toString('base64url');
  const answer = (response: object) => {
    return {
      id,
      rawId: id,
      type: 'public-key',
      clientExtensionResults: {},
      authenticatorAttachment: 'platform',
      response,
    };
  };
  const client = (type: string, challenge: string, given: Deviation) =>
    Buffer.from(
      JSON.stringify({ type: given.type ?? type, challenge, origin: given.origin ?? origin, crossOrigin: false }),
    );
  const device = (flags: number, given: Deviation, more: Buffer[] = []) => {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(given.counter ?? 0);
    const site = createHash('sha256')
      .update(given.rpId ?? hostname)
      .digest();
    return Buffer.concat([site, Buffer.from([given.flags ?? flags]), counter, ...more]);
  };
  return {
    id,
    create({ challenge }, given = {}) {
      const length = Buffer.from([0, rawId.length]);
      const data = device(present | verified | withKey, given, [Buffer.alloc(16), length, rawId, coseKey(publicKey)]);
      // CBOR: {fmt: 'none', attStmt: {}, authData}
      const attestation = Buffer.concat([
        Buffer.from([0xa3]),
        text('fmt'),
        text('none'),
        text('attStmt'),
        Buffer.from([0xa0]),
        text('authData'),
        bytes(data),
      ]);
      return answer({
        clientDataJSON: client('webauthn.create', challenge, given).toString('base64url'),
        attestationObject: attestation.toString('base64url'),
        transports: ['internal'],
      });
    },
    sign({ challenge }, given = {}) {
      const [clientData, data] = [client('webauthn.get', challenge, given), device(present | verified, given)];
      const signed = Buffer.concat([data, createHash('sha256').update(clientData).digest()]);
      return answer({
        clientDataJSON: clientData.toString('base64url'),
        authenticatorData: data.toString('base64url'),
        signature: sign('sha256', signed, privateKey).toString('base64url'),
      });
    },
  };
}

function text(word: string): Buffer {
  return Buffer.concat([Buffer.from([0x60 + word.length]), Buffer.from(word)]);
}

function bytes(content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x58, content.length]), content]);
}

/** CBOR of an ES256 key: {1: 2, 3: -7, -1: 1, -2: x, -3: y}. */
function coseKey(key: KeyObject): Buffer {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  const [left, right] = [Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')];
  const head = Buffer.from([0xa5, 1, 2, 3, 0x26, 0x20, 1]);
  return Buffer.concat([head, Buffer.from([0x21]), bytes(left), Buffer.from([0x22]), bytes(right)]);
}
