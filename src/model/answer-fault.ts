import { Ajv } from 'ajv';
import { schemas } from './answer-schemas.ts';
import { uuidForm } from './job.ts';

const ajv = new Ajv({
  meta: false,
  validateSchema: false,
  keywords: [
    'components',
    { keyword: 'x-extensible-enum', validate: (known: readonly unknown[], value: unknown) => known.includes(value) },
  ],
  formats: {
    uuid: uuidForm,
    int64: true,
    date: /^\d{4}-\d\d-\d\d$/,
    uri: (value) => URL.canParse(value),
    'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/,
  },
}).addSchema({ components: { schemas } }, 'answers');

/** Returns the first value of an answer that does not fit its schema, and why; `null` when there is none. */
export function answerFault(name: string, answer: unknown): { path: string; problem: string } | null {
  const fits = ajv.getSchema(`answers#/components/schemas/${name}`);
  if (!fits) throw new Error(`there is no schema ${name}`);
  if (fits(answer)) return null;
  const { instancePath, message } = fits.errors![0]!;
  return { path: instancePath.slice(1).replaceAll('/', '.'), problem: message! };
}
