import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { makeOpenapi } from '../api/openapi.ts';
import { version } from '../base/version.ts';

/** Returns docs/openapi.json: the document of this version, out of which clients are generated. */
export function writeOpenapi(): string {
  return `${JSON.stringify(makeOpenapi(version, 'https://trawl.example'), null, 2)}\n`;
}

if (import.meta.main) writeFileSync(fileURLToPath(new URL('../../docs/openapi.json', import.meta.url)), writeOpenapi());
