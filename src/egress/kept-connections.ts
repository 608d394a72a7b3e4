import type { Server, ServerResponse } from 'node:http';

/**
 * Returns a function that closes the server and ends each connection after the answer on it. `close()` of Node ends idle connections
 * alone and goes on to serve requests on the others: a client could ask a process that drains for minutes under a policy that is old.
 */
export function prepareClose(server: Server): () => Promise<void> {
  const open = new Set<ServerResponse>();
  let isClosing = false;
  server.on('request', (request, response) => {
    open.add(response);
    if (isClosing) response.shouldKeepAlive = false;
    // Its headers may have been sent before the close, and then promise a connection that stays.
    response.once('finish', () => {
      if (isClosing) request.socket.destroySoon();
    });
    response.once('close', () => open.delete(response));
  });
  return async () => {
    isClosing = true;
    for (const response of open) response.shouldKeepAlive = false;
    await new Promise((resolve) => server.close(resolve));
  };
}
