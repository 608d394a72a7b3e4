import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Express, Response } from 'express';

const folder = join(import.meta.dirname, 'pages');
const types = { css: 'text/css', html: 'text/html', js: 'text/javascript', svg: 'image/svg+xml' } as const;
const week = 7 * 86_400;

/** Files of the pages by their path; the one of a package is sent as it is published. */
const files: Readonly<Record<string, string>> = {
  ...Object.fromEntries(readdirSync(folder).map((name) => [`/${name}`, join(folder, name)])),
  '/vendor/preact.js': fileURLToPath(import.meta.resolve('htm/preact/standalone')),
};
/** Every view is one page: its script shows what the address names, so a link to any view can be shared. */
const views = [
  '/',
  '/sign-in',
  '/download',
  '/jobs',
  '/jobs/:id',
  '/keys',
  '/requests',
  '/billing',
  '/webhooks',
  '/people',
  '/account',
];

/** Adds the files of the pages, which are the same for everybody and hold nothing of an account. */
export function servePages(app: Express): void {
  const page = readFileSync(join(folder, 'index.html'));
  app.get(views, (_req, res) => send(res, 'html', page, 0));
  for (const [path, file] of Object.entries(files)) {
    const content = readFileSync(file);
    const type = path.slice(path.lastIndexOf('.') + 1) as keyof typeof types;
    app.get(path, (_req, res) => send(res, type, content, path.startsWith('/vendor/') ? week : 0));
  }
}

function send(res: Response, type: keyof typeof types, content: Buffer, seconds: number): void {
  res.set('content-type', `${types[type]}; charset=utf-8`);
  res.set('cache-control', seconds > 0 ? `public, max-age=${seconds}` : 'no-cache');
  res.end(content);
}
