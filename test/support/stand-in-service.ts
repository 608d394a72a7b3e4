import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ClientCommand, type ClientName, type ClientOutcome, startClientDriver } from './client-driver.ts';

/** Runs a command of a client against a stand-in for the service, which answers each path. */
export async function runAtStandIn(
  name: ClientName,
  answer: (path: string, response: ServerResponse) => void,
  command: Partial<ClientCommand>,
  patienceSeconds = 30,
): Promise<ClientOutcome> {
  const server = createServer(({ url = '' }, response) => answer(url, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const driver = startClientDriver(name);
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return await driver.run({ verb: 'start', url, service: { url, key: 'k', patienceSeconds }, ...command });
  } finally {
    await driver.stop();
    server.closeAllConnections();
    server.close();
  }
}
