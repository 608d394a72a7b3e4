import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './tree.ts';

/** Declarations of the library, which are of the version of the API that it names in each request, by the path that takes them. */
const declarations: Readonly<Record<string, readonly [file: string, name: string]>> = {
  '/v1/payment_intents': ['PaymentIntents.d.ts', 'PaymentIntentCreateParams'],
  '/v1/checkout/sessions': ['Checkout/Sessions.d.ts', 'SessionCreateParams'],
  '/v1/customers': ['Customers.d.ts', 'CustomerCreateParams'],
};

/** Returns the parameters of a request to create something that this version of Stripe's API does not have, and refuses. */
export function unknownParameters(path: string, form: URLSearchParams): string[] {
  const declared = declarations[path];
  if (declared === undefined) return [];
  const known = readMembers(...declared);
  const names = [...form.keys()].map((name) => name.replace(/\[.*/, ''));
  return [...new Set(names)].filter((name) => !known.has(name));
}

function readMembers(file: string, name: string): Set<string> {
  const text = readFileSync(join(root, 'node_modules/stripe/cjs/resources', file), 'utf8');
  const [, indent = '', body] =
    new RegExp(`^( *)(?:export )?interface ${name} \\{\\n([\\s\\S]*?)\\n\\1\\}`, 'm').exec(text) ?? [];
  if (body === undefined) throw new Error(`the library declares no ${name} in ${file}`);
  return new Set([...body.matchAll(new RegExp(`^${indent}    (\\w+)\\??:`, 'gm'))].map(([, member]) => member!));
}
