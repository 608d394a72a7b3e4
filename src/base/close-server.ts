import type { Server } from 'node:http';

const tidyMs = 50;

/** Accepts nothing more, lets requests under way end for `drainMs`, then cuts every connection; resolves when all are closed. */
export async function closeServer(server: Server, drainMs = 0): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // A keep-alive connection whose answer ends after `close` would stay open until its idle timeout.
  const tidy = setInterval(() => server.closeIdleConnections(), tidyMs);
  const cut = setTimeout(() => server.closeAllConnections(), drainMs);
  if (drainMs === 0) server.closeAllConnections();
  await closed;
  clearInterval(tidy);
  clearTimeout(cut);
}
