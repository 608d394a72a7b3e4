import { createReadStream, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { makeFilms } from '../support/films.ts';

/** Value of TRAWL_YTDLP_PLUGINS with which yt-dlp runs what a hostile source answers, inside its unchanged sandbox. */
export const hostilePlugin = join(import.meta.dirname, 'hostile-plugin');

/** A source on loopback whose pages are Python texts for the hostile plugin. */
export interface HostileSource {
  readonly url: string;
  readonly host: string;
  /** Film of a few seconds, as a source would serve it. */
  readonly film: string;
  /** Returns the URL of a page that takes yt-dlp over with a Python text, which sees `given`. */
  readonly lay: (python: string, given?: object) => string;
  /** Texts that attacks reported, in their order. */
  readonly reports: string[];
  readonly stop: () => Promise<void>;
}

export async function startHostileSource(): Promise<HostileSource> {
  const attacks: string[] = [];
  const reports: string[] = [];
  const film = join(makeFilms(), 'clip.mp4');
  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy());
  });
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const [, first = '', name = ''] = (request.url ?? '').split('?')[0]!.split('/');
    if (first === 'report') {
      reports.push(await text(request));
      response.end('noted');
    } else if (first === 'hostile') {
      response.setHeader('content-type', 'application/json').end(attacks[Number(name)] ?? '{}');
    } else if (first === 'film.mp4') {
      response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': statSync(film).size });
      createReadStream(film).pipe(response);
    } else response.writeHead(404).end();
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ url: `http://${host}`, host, film: `http://${host}/film.mp4`, reports },
    lay: (python, given = {}) => `http://${host}/hostile/${attacks.push(JSON.stringify({ python, given })) - 1}`,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
