import { createReadStream, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';

/** Serves the program that draws, the dashboards and a way to Prometheus. */
export interface PageServer {
  readonly url: string;
  close(): Promise<void>;
}

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.ttf': 'font/ttf',
  '.woff2': 'font/woff2',
  '.svg': 'image/svg+xml',
};
const page = `<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="/render.css">
<body style="margin:0;position:relative"><div id="root"></div>
<script>window.__grafana_public_path__ = '/public/'</script><script type="module" src="/render.js"></script>`;

export async function servePages(boards: Readonly<Record<string, string>>, prometheus: string): Promise<PageServer> {
  const server = createServer(async (request, response) => {
    const { pathname, search } = new URL(request.url ?? '/', 'http://draw');
    const send = (type: string, text: string) => response.writeHead(200, { 'content-type': type }).end(text);
    if (pathname === '/') return send('text/html', page);
    if (pathname.startsWith('/board/')) return send('application/json', boards[pathname.slice(7)] ?? '{}');
    if (pathname.startsWith('/prometheus/')) {
      const asked = prometheus + pathname.slice('/prometheus'.length) + search;
      return send('application/json', await askText(asked).catch(failureOf));
    }
    const path = normalize(pathname);
    const ours = path.startsWith('/public/')
      ? join('node_modules/@grafana/ui/dist', path)
      : join('node_modules/.out', path);
    const file = join(import.meta.dirname, ours);
    if (!existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': types[extname(file)] ?? 'application/octet-stream' });
    return createReadStream(file).pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function askText(url: string): Promise<string> {
  return (await fetch(url)).text();
}

/** Returns an error as Prometheus words one. */
function failureOf({ message, cause }: Error): string {
  return JSON.stringify({ status: 'error', error: `Prometheus does not answer: ${cause ?? message}` });
}
