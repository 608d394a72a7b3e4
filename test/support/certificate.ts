import { generateKeyPairSync, sign } from 'node:crypto';

const ecdsaWithSha256 = '06082a8648ce3d040302';
const commonName = '0603550403';
const subjectAltName = '0603551d11';

/** Makes a key and a certificate for one host name that only itself vouches for, good from 2020 to 2049. */
export function makeCertificate(host: string): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const algorithm = part(0x30, Buffer.from(ecdsaWithSha256, 'hex'));
  const name = part(0x30, part(0x31, part(0x30, Buffer.from(commonName, 'hex'), part(0x0c, Buffer.from(host)))));
  const validity = part(0x30, part(0x17, Buffer.from('200101000000Z')), part(0x17, Buffer.from('491231235959Z')));
  const names = part(0x30, part(0x82, Buffer.from(host)));
  const extensions = part(0x30, part(0x30, Buffer.from(subjectAltName, 'hex'), part(0x04, names)));
  const certified = part(
    0x30,
    part(0xa0, part(0x02, Buffer.from([2]))),
    part(0x02, Buffer.from([1])),
    algorithm,
    name,
    validity,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    part(0xa3, extensions),
  );
  const signature = part(0x03, Buffer.from([0]), sign('sha256', certified, privateKey));
  const base64 = part(0x30, certified, algorithm, signature).toString('base64');
  const cert = `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), cert };
}

/** One element of DER: its tag, its length and what is in it. */
function part(tag: number, ...inside: Buffer[]): Buffer {
  const bytes = Buffer.concat(inside);
  const length = bytes.length < 128 ? [bytes.length] : [0x82, bytes.length >> 8, bytes.length & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), bytes]);
}
