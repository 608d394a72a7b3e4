import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { makeDocs } from './generated-pages.ts';

const folder = fileURLToPath(new URL('../../docs/', import.meta.url));
mkdirSync(folder, { recursive: true });
for (const [name, text] of Object.entries(makeDocs())) writeFileSync(folder + name, text);
