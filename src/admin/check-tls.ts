import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { Config } from '../base/config.ts';
import { messageOf } from '../base/errors.ts';
import { type Finding, findingOf } from './doctor-finding.ts';

const about = 'tls';
const dayMs = 86_400_000;
/** cert-manager renews a third of the lifetime before the end: so close to it, nothing renews. */
const soonDays = 7;

/** Judges certificate, key and authorities of the TLS between the parts, as far as the settings name them. */
export function checkTls({ tlsCertFile, tlsKeyFile, tlsCaFile }: Config, now: number): Finding[] {
  return [
    ...(tlsCertFile && tlsKeyFile ? [checkCertificate(tlsCertFile, tlsKeyFile, now)] : []),
    ...(tlsCaFile ? [checkAuthorities(tlsCaFile, now)] : []),
  ];
}

function checkCertificate(certFile: string, keyFile: string, now: number): Finding {
  try {
    const cert = readFileSync(certFile, 'utf8');
    createSecureContext({ cert, key: readFileSync(keyFile, 'utf8') });
    const { validTo, subjectAltName = 'no host' } = new X509Certificate(cert);
    const days = Math.floor((Date.parse(validTo) - now) / dayMs);
    const text = `The certificate ${certFile} for ${subjectAltName} is valid until ${new Date(validTo).toISOString()}`;
    if (days < 0) return findingOf(false, about, `${text}: it has ended, so no part trusts this one.`);
    return findingOf(days >= soonDays, about, days < soonDays ? `${text}: renew it now.` : `${text}.`, 'note');
  } catch (error) {
    return findingOf(false, about, `${certFile} and ${keyFile} hold no certificate with its key: ${messageOf(error)}.`);
  }
}

function checkAuthorities(file: string, now: number): Finding {
  try {
    const all = readFileSync(file, 'utf8').match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
    const valid = all.filter((text) => Date.parse(new X509Certificate(text).validTo) > now);
    const text = `${file} names ${all.length} authorities, ${valid.length} of them valid`;
    return findingOf(valid.length > 0, about, valid.length > 0 ? `${text}.` : `${text}: no part can be reached.`);
  } catch (error) {
    return findingOf(false, about, `The authorities in ${file} cannot be read: ${messageOf(error)}.`);
  }
}
