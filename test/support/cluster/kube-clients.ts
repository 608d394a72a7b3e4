import { type KubeClient, openKubeClient } from '../../../src/runners/kubernetes/kube-client.ts';
import { makeRateLimiter } from '../../../src/runners/kubernetes/rate-limiter.ts';
import { type FakeApiServer, startFakeApiServer } from './fake-api-server.ts';

/** Two clients of a fake API server. */
interface KubeClients {
  readonly server: FakeApiServer;
  readonly client: KubeClient;
  /** For requests that nobody answers: one that is answered may take longer on a busy machine. */
  readonly hasty: KubeClient;
  /** Returns how often the clients halved their speed. */
  readonly slowed: () => number;
  stop(): Promise<void>;
}

export const hastyMs = 800;

interface ClientOptions {
  /** Usual limit of the client that is not hasty. */
  readonly answerMs?: number;
  /** Limit of the hasty client for answers that it waits for longer. */
  readonly maxHastyMs?: number;
  /** False when the test itself answers `/version`. */
  readonly tellsVersion?: boolean;
}

/** Starts the server and its clients. */
export async function startKubeClients({
  answerMs,
  maxHastyMs,
  tellsVersion,
}: ClientOptions = {}): Promise<KubeClients> {
  const server = await startFakeApiServer(tellsVersion);
  let slowed = 0;
  const options = {
    access: { server: server.url, tls: async () => ({}), headers: async () => ({ authorization: 'Bearer word' }) },
    rateLimit: { ...makeRateLimiter(10_000, 10_000), halve: () => void slowed++ },
  };
  const client = openKubeClient({ ...options, ...(answerMs !== undefined && { answerMs }) });
  const hasty = openKubeClient({
    ...options,
    answerMs: hastyMs,
    ...(maxHastyMs !== undefined && { maxAnswerMs: maxHastyMs }),
  });
  const stop = async () => {
    await client.close();
    await hasty.close();
    await server.stop();
  };
  return { server, client, hasty, slowed: () => slowed, stop };
}
