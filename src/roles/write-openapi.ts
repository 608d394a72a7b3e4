import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { makeOpenapi } from '../api/openapi.ts';

/** The document of this version, out of which clients are generated. */
const document = makeOpenapi('https://trawl.example');
writeFileSync(
  fileURLToPath(new URL('../../docs/openapi.json', import.meta.url)),
  `${JSON.stringify(document, null, 2)}\n`,
);
