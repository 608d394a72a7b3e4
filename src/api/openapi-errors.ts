import { STATUS_CODES } from 'node:http';
import { type RefusalCode, refusals } from '../base/errors.ts';
import { ref } from '../model/answer-schemas.ts';
import { headersOf } from './openapi-headers.ts';
import { operations } from './openapi-operations.ts';
import type { OperationRow } from './openapi-row.ts';
import { openRoutes } from './routes.ts';

/** Errors that any request may get before its route is known. */
const early: Readonly<Record<number, string>> = {
  408: 'The request took too long to arrive',
  431: 'The URL or the headers are too long',
};

/** Returns the error answers of all operations as components, those of routes without a key apart. */
export function errorComponents(): object {
  const components = [false, true].flatMap((isOpen) => {
    const rows = Object.entries(operations).filter(([name]) => name in openRoutes === isOpen);
    const codes = rows.flatMap(([, methods]) => Object.values<OperationRow>(methods).flatMap((row) => row.errors));
    const byStatus = Map.groupBy(new Set(codes), (code) => refusals[code].status);
    const known = [...byStatus].map(([status, same]) => [status, same.map((code) => refusals[code].sentence)] as const);
    const all = [...known, ...Object.entries(early).map(([status, text]) => [Number(status), [text]] as const)];
    return all.map(([status, sentences]) => [nameOf(status, isOpen), response(status, sentences, isOpen)]);
  });
  return Object.fromEntries(components);
}

/** Returns the error answers of one operation, by status. */
export function errorsOf(codes: readonly RefusalCode[], isOpen: boolean): object {
  const statuses = [...codes.map((code) => refusals[code].status), ...Object.keys(early).map(Number)];
  const named = (status: number) => ({ $ref: `#/components/responses/${nameOf(status, isOpen)}` });
  return Object.fromEntries(statuses.map((status) => [status, named(status)]));
}

function nameOf(status: number, isOpen: boolean): string {
  return `${isOpen ? 'Open' : ''}${STATUS_CODES[status]?.replaceAll(' ', '')}`;
}

function response(status: number, sentences: readonly string[], isOpen: boolean): object {
  return {
    description: sentences.join('; '),
    headers: headersOf(String(status), isOpen, false),
    content: { 'application/json': { schema: ref('Error'), example: { error: sentences[0] } } },
  };
}
