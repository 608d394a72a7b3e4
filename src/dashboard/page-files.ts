import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { Express, Request, Response } from 'express';
import { sendPage } from '../api/document-pages.ts';
import type { KeylessLimit } from '../api/keyless-limit.ts';
import { errorReply, sendReply } from '../api/reply.ts';
import { views } from './dashboard-views.ts';

const folder = join(import.meta.dirname, 'pages');
const types = { css: 'text/css', html: 'text/html', js: 'text/javascript', svg: 'image/svg+xml' } as const;
const week = 7 * 86_400;

/** Files of the pages by their path; those of packages are sent as they are published. */
const files: Readonly<Record<string, string>> = {
  ...Object.fromEntries(readdirSync(folder).map((name) => [`/${name}`, join(folder, name)])),
  '/vendor/preact.js': fileURLToPath(import.meta.resolve('htm/preact/standalone')),
  '/vendor/uplot.js': fileURLToPath(import.meta.resolve('uplot/dist/uPlot.iife.min.js')),
  '/vendor/uplot.css': fileURLToPath(import.meta.resolve('uplot/dist/uPlot.min.css')),
};

type PageFile = ReturnType<typeof readPageFile>;

/** Adds the files of the pages, which are the same for everybody and hold nothing of an account. */
export function servePages(app: Express, limitKeyless: KeylessLimit): void {
  const page = readPageFile('/index.html', join(folder, 'index.html'));
  const sendIndex = (req: Request, res: Response) => {
    try {
      limitKeyless(req, res);
      send(req, res, page);
    } catch (error) {
      sendReply(res, errorReply(error));
    }
  };
  app.get(views, sendIndex);
  // Not counted: a page loads thirty of them, and many people may share an address.
  for (const [path, name] of Object.entries(files)) {
    const file = readPageFile(path, name);
    app.get(path, (req, res) => send(req, res, file));
  }
  // A wrong link shows a reader the page, which says so; a program gets JSON.
  app.get(/^\/(?!api\/)/, (req, res, next) => {
    if (req.accepts(['json', 'html']) !== 'html') return next();
    res.status(404);
    sendIndex(req, res);
  });
}

function readPageFile(path: string, name: string) {
  const plain = readFileSync(name);
  const type = path.slice(path.lastIndexOf('.') + 1) as keyof typeof types;
  /** Time for which a browser keeps it without asking. */
  const seconds = path.startsWith('/vendor/') ? week : 0;
  return { type, plain, pressed: gzipSync(plain), seconds };
}

function send(req: Request, res: Response, file: PageFile): void {
  const headers = { 'cache-control': file.seconds > 0 ? `public, max-age=${file.seconds}` : 'no-cache' };
  sendPage({ req, res, headers }, types[file.type], file);
}
