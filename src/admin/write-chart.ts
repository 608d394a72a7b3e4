import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { makeChartTemplates } from './chart-templates.ts';

const folder = fileURLToPath(new URL('../../charts/trawl/templates/', import.meta.url));
for (const [name, text] of Object.entries(makeChartTemplates())) writeFileSync(folder + name, text);
