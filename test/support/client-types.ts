import { read } from './tree.ts';

interface AnySchema {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, AnySchema>>;
  readonly required?: readonly string[];
  readonly items?: AnySchema;
  readonly anyOf?: readonly AnySchema[];
}

/** Fields of schemas as `Job.queue.position`, with `?` behind an optional one; a schema that another one names is not entered. */
export function fieldsOfSchemas(schemas: Readonly<Record<string, AnySchema>>): string[] {
  const fieldsOf = (schema: AnySchema, path: string): string[] => [
    ...Object.entries(schema.properties ?? {}).flatMap(([name, one]) => {
      const field = `${path}.${name}`;
      return [`${field}${schema.required?.includes(name) ? '' : '?'}`, ...fieldsOf(one, field)];
    }),
    ...[...(schema.items ? [schema.items] : []), ...(schema.anyOf ?? [])].flatMap((one) => fieldsOf(one, path)),
  ];
  return Object.entries(schemas).flatMap(([name, schema]) => fieldsOf(schema, name));
}

/** The same fields, as the generated types of the TypeScript client name them: their indentation tells the depth. */
export function fieldsOfTypescript(): string[] {
  const names: string[] = [];
  const lines = read('clients/typescript/src/api-types.ts').matchAll(/^((?: {4}){2,})(\w+)(\??): /gm);
  return [...lines].flatMap(([, indent, name, mark]) => {
    names.splice(indent!.length / 4 - 2, names.length, name!);
    return names.length > 1 ? [`${names.join('.')}${mark}`] : [];
  });
}

/** The same fields, as the generated types of the Python client name them: what is nested has a class of its own. */
export function fieldsOfPython(schemas: readonly string[]): string[] {
  const code = read('clients/python/trawl_client/api_types.py');
  const classes = new Map(
    [...code.matchAll(/^class (\w+)\(TypedDict\):\n((?: {4}.*\n)*)/gm)].map(([, name, body]) => [name!, body!]),
  );
  const fieldsOf = (name: string, path: string): string[] =>
    [...(classes.get(name) ?? '').matchAll(/^ {4}(\w+): (.+)$/gm)].flatMap(([, field, type]) => {
      const nested = type!.match(/\b[A-Z]\w*\b/g)?.find((word) => classes.has(word) && !schemas.includes(word));
      const mark = type!.startsWith('NotRequired[') ? '?' : '';
      return [`${path}.${field}${mark}`, ...(nested ? fieldsOf(nested, `${path}.${field}`) : [])];
    });
  return schemas.flatMap((name) => fieldsOf(name, name));
}
