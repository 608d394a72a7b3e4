import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type Request, request } from 'express';
import { refuse } from '../base/errors.ts';
import { escapeHtml } from '../base/escape-html.ts';
import type { KeylessCall, OpenHandler } from './api-call.ts';

const press = promisify(gzip);
const own = (name: string) => new URL(`./pages/${name}`, import.meta.url);
const viewer = (name: string) => new URL(import.meta.resolve(`swagger-ui-dist/${name}`));

/** Files of the pages under /docs, by name: a closed list, so that a path can name no other file. */
const files: Readonly<Record<string, { readonly from: URL; readonly type: string }>> = {
  'api-docs.js': { from: own('api-docs.js'), type: 'text/javascript' },
  'api-pages.css': { from: own('api-pages.css'), type: 'text/css' },
  'swagger-ui-bundle.js': { from: viewer('swagger-ui-bundle.js'), type: 'text/javascript' },
  'swagger-ui.css': { from: viewer('swagger-ui.css'), type: 'text/css' },
};

/** No inline script or style, no frame, and no origin but this one; the viewer's icons are data URLs. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const pageHeaders = {
  'content-security-policy': policy,
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
};

type PageBody = Awaited<ReturnType<typeof withPressed>>;

export function showWelcome(publicUrl: () => string): OpenHandler {
  return showPage('welcome.html', (text) => text.replaceAll('{{URL}}', escapeHtml(publicUrl())));
}

export function sendDocsFile(): OpenHandler {
  const bodies = new Map<string, Promise<PageBody>>();
  return async (call) => {
    const name = String(call.req.params.file);
    const file = Object.hasOwn(files, name) ? files[name] : undefined;
    if (file === undefined) throw refuse('not_found');
    const body = bodies.get(name) ?? readFile(file.from).then(withPressed);
    bodies.set(name, body);
    call.headers['cache-control'] = 'public, max-age=3600';
    return sendPage(call, file.type, await body);
  };
}

export function showPage(name: string, fill = (text: string) => text): OpenHandler {
  let body: Promise<PageBody> | undefined;
  return async (call) => {
    body ??= readFile(own(name), 'utf8').then((text) => withPressed(Buffer.from(fill(text))));
    Object.assign(call.headers, pageHeaders);
    return sendPage(call, 'text/html', await body);
  };
}

async function withPressed(plain: Buffer) {
  return { plain, pressed: await press(plain) };
}

/** Sends a body, pressed where the browser takes that. */
export function sendPage({ req, res, headers }: KeylessCall, type: string, { plain, pressed }: PageBody): null {
  const isPressed = request.acceptsEncodings.call(req as Request, 'gzip') === 'gzip';
  const body = isPressed ? pressed : plain;
  res.writeHead(res.statusCode, {
    ...headers,
    'content-type': `${type}; charset=utf-8`,
    'content-length': body.length,
    vary: 'accept-encoding',
    ...(isPressed ? { 'content-encoding': 'gzip' } : {}),
  });
  res.end(body);
  return null;
}
