import { hash } from 'node:crypto';
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import express from 'express';
import { deliverFile, type FileRoutes } from '../../src/api/file-routes.ts';
import { errorReply, sendReply } from '../../src/api/reply.ts';
import { Refusal } from '../../src/base/errors.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { makeLink } from '../../src/model/file-link.ts';
import type { Job } from '../../src/model/job.ts';
import type { Delivered } from '../../src/model/outcome.ts';
import { openFolder } from '../../src/objects/folder-store.ts';
import type { ObjectStore } from '../../src/objects/object-store.ts';
import { aJob } from './jobs.ts';

/** An answer to a request for a file. */
export interface FileAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** A real server of result links, whose files are in a real folder. */
export interface TestFiles {
  readonly origin: string;
  readonly objects: ObjectStore;
  /** Makes this the only job there is. */
  readonly serve: (job: Job | null, more?: Partial<FileRoutes>) => void;
  readonly ask: (path: string, method?: string, headers?: Record<string, string>) => Promise<FileAnswer>;
  /** Number of requests that ended with an error. */
  readonly failed: () => number;
  /** Number of files of the store that this process has open. */
  readonly countOpen: () => number;
  readonly stop: () => Promise<void>;
}

const seal = makeSeal({ secret: Buffer.alloc(32, 1) });

export const now = Date.UTC(2026, 0, 1);
export const expiresAt = now + 1000;
export const content = 'The bytes of a film';
export const longContent = 'long '.repeat(6_000_000);
export const done = jobOf('job/1/media.mp4', content);
export const longDone = jobOf('job/1/long.mp4', longContent);

/** The link to the file of a job, without a public URL before it. */
export function linkTo(job: Job): string {
  return makeLink(job, expiresAt, '', seal.sign) ?? '';
}

/** Starts a server that serves the two jobs above, one at a time. */
export async function startFiles(): Promise<TestFiles> {
  const folder = mkdtempSync(join(tmpdir(), 'files-'));
  const objects = await openFolder({ folder, seal, now: Date.now });
  for (const [{ delivered }, body] of [
    [done, content],
    [longDone, longContent],
  ] as const) {
    await objects.receive(
      await objects.permit(delivered.key, { bytes: body.length }),
      Readable.from(Buffer.from(body)),
    );
  }
  let files: FileRoutes;
  let failed = 0;
  const app = express();
  app.all('/files/:job/:name', async (req, res) => {
    const reply = await deliverFile(files)({ req, res, headers: { 'x-request-id': 'own' } }).catch((error) => {
      if (!(error instanceof Refusal)) failed += 1;
      return errorReply(error);
    });
    if (reply && !res.headersSent && !res.destroyed) sendReply(res, reply);
  });
  const server = createServer(app.disable('x-powered-by')).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    objects,
    serve: (job, more) => {
      const readJob = async (id: string) => (id === done.id ? job : null);
      files = { verify: seal.verify, readJob, objects, now: () => now, ...more };
    },
    ask: (path, method = 'GET', headers = {}) => ask(origin + path, method, headers),
    failed: () => failed,
    countOpen: () => openFiles(folder),
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true });
    },
  };
}

function jobOf(key: string, body: string): Job & { readonly delivered: Delivered } {
  const delivered = { key, bytes: body.length, sha256: hash('sha256', body), content_type: 'video/mp4' };
  return { ...aJob({ status: 'CompletedJob', metadata: { title: 'Käse\r\nX: "y"' } }), delivered };
}

async function ask(url: string, method: string, headers: Record<string, string>): Promise<FileAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request(url, { method, headers, agent: false }, resolve).on('error', reject).end();
  const answer = await promise;
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await text(answer) };
}

/** Number of files with this word in their path that this process has open. */
export function openFiles(word: string): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).includes(word);
    } catch {
      // The file was closed meanwhile, as the one that reads this list is.
      return false;
    }
  }).length;
}
