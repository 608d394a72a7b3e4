import { once } from 'node:events';
import { request, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { maxClientConnections } from '../../src/base/resource-limits.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { makeWorkerGateway } from '../../src/controller/worker-gateway.ts';
import { openFolder } from '../../src/objects/folder-store.ts';
import { openListener } from '../../src/roles/socket.ts';
import { storeOf } from '../support/record.ts';
import { aFolder, aLog, startTestRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

const pod = '127.0.0.1';
const otherPod = '127.0.0.2';
const many = maxClientConnections + 200;

describe('Connections to a gateway that a taken-over pod keeps', () => {
  const place = aFolder();
  const { lines, log } = aLog();
  let redis: TestRedis;
  let gateway: Server;
  let end: () => Promise<void>;
  before(async () => {
    redis = await startTestRedis();
    const seal = makeSeal({ secret: Buffer.alloc(32, 7), old: null });
    gateway = makeWorkerGateway({
      ...{ store: storeOf(redis.connection), objects: await openFolder({ folder: place.folder, seal, now: Date.now }) },
      ...{ attemptOf: async () => null, cookiesOf: async () => null, log },
      ...{ maxFileBytes: 1_000, maxAttemptMs: 7_200_000, inspectSeconds: 10 },
    });
    end = await openListener(gateway, { host: '127.0.0.1', port: 0 });
  });
  after(async () => {
    await end();
    await redis.stop();
    place.remove();
  });

  const port = () => (gateway.address() as AddressInfo).port;
  const open = () => new Promise<number>((resolve) => gateway.getConnections((_, count) => resolve(count)));
  const ask = async (localAddress: string) => {
    const asked = request({ host: '127.0.0.1', port: port(), path: '/v1/attempt', localAddress, agent: false }).end();
    const [answer] = await once(asked, 'response');
    answer.resume();
    return answer.statusCode;
  };

  it('are at most those of one address, which the log names once, so that a worker in another pod is answered, and count no more once they are closed', async () => {
    const held: Socket[] = [];
    for (let n = 0; n < many; n++) {
      const socket = connect({ host: '127.0.0.1', port: port(), localAddress: pod });
      held.push(socket.on('error', () => {}));
      await once(socket, 'connect');
    }
    const isClosed = () => held.filter(({ destroyed }) => destroyed).length === many - maxClientConnections;
    for (const socket of held) socket.resume();
    await until(isClosed, 10, 'the surplus is closed');
    expect(await open()).to.equal(maxClientConnections);
    const told = lines.map((line) => JSON.parse(line)).filter(({ level }) => level === 'warn');
    expect(told.map(({ address }) => address)).to.deep.equal([pod]);
    expect(told[0]?.text).to.contain(`${maxClientConnections} connections`);
    expect(await ask(otherPod)).to.equal(401);
    for (const socket of held) socket.destroy();
    await until(async () => (await open()) === 0, 10, 'all are closed');
    expect(await ask(pod)).to.equal(401);
  });
});
