import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { Config } from '../base/config.ts';
import { messageOf } from '../base/errors.ts';
import { endsOfCertificates } from '../base/server-certificate.ts';
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
    const { subjectAltName = 'no host' } = new X509Certificate(cert);
    const end = Math.min(...endsOfCertificates(cert));
    const days = Math.floor((end - now) / dayMs);
    const text = `The certificate ${certFile} for ${subjectAltName} is valid until ${new Date(end).toISOString()}`;
    if (days < 0) return findingOf(false, about, `${text}: it has ended, so no part trusts this one.`);
    return findingOf(days >= soonDays, about, days < soonDays ? `${text}: renew it now.` : `${text}.`, 'note');
  } catch (error) {
    return findingOf(false, about, `${certFile} and ${keyFile} hold no certificate with its key: ${messageOf(error)}.`);
  }
}

function checkAuthorities(file: string, now: number): Finding {
  try {
    const all = endsOfCertificates(readFileSync(file, 'utf8'));
    const valid = all.filter((end) => end > now);
    const text = `${file} names ${all.length} authorities, ${valid.length} of them valid`;
    if (valid.length === 0) return findingOf(false, about, `${text}: no part can be reached.`);
    const last = Math.max(...valid);
    const isSoon = last - now < soonDays * dayMs;
    return findingOf(
      !isSoon,
      about,
      isSoon ? `${text}, until ${new Date(last).toISOString()}: renew them now.` : `${text}.`,
      'note',
    );
  } catch (error) {
    return findingOf(false, about, `The authorities in ${file} cannot be read: ${messageOf(error)}.`);
  }
}
