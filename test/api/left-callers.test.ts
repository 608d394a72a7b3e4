import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import { type ApiCaller, aFilm, startApi, type TestApi } from '../support/api.ts';
import { freezeProcess } from '../support/freeze-process.ts';
import { until } from '../support/until.ts';

describe('a metadata call whose caller leaves before it is admitted', () => {
  let api: TestApi;
  let caller: ApiCaller;
  before(async () => {
    api = await startApi();
    caller = await api.addCaller({ credits: 10 });
  });
  after(() => api.stop());

  const beginCall = (onSent: (socket: Socket) => void = () => {}) => {
    const target = '/v1/media/metadata?query=https://example.com/a';
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1').on('error', () => {});
    socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\nx-api-key: ${caller.key}\r\n\r\n`, () => onSent(socket));
    return socket;
  };
  const countLeft = async () => {
    const { values } = await api.metrics.http_requests_total.get();
    return values.find(({ labels }) => labels.route === 'metadata' && labels.status === 499)?.value ?? 0;
  };

  it('ends at once, without its hold and without an inspection that nobody waits for', async () => {
    api.inspect(async (_, __, gone) => {
      await gone;
      return null;
    });
    beginCall((socket) => socket.destroy());
    await until(async () => (await countLeft()) === 1, 10, 'the call has ended');
    const { held, total_used } = (await api.get('/v1/usage', caller.key)).json;
    expect([held, total_used]).to.deep.equal([0, 0]);
  });

  it('has nothing inspected when its connection was reset while Redis judged it', async () => {
    let asked = 0;
    api.inspect(() => {
      asked++;
      return { metadata: aFilm };
    });
    const before = await countLeft();
    // The API reads its connections in their order: behind this call it has heard of what came before.
    const hear = () => api.get('/openapi.json');
    const thaw = await freezeProcess(api.redis.pid());
    try {
      const socket = beginCall();
      await once(socket, 'connect');
      await hear();
      socket.resetAndDestroy();
      await hear();
    } finally {
      thaw();
    }
    await until(async () => (await countLeft()) > before, 10, 'the call has ended');
    expect(asked).to.equal(0);
  });
});

describe('the connection of a metadata call that has been answered', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.stop());

  it('keeps no listener for the end of its caller, however many calls come over it', async () => {
    const count = 12;
    const { key } = await api.addCaller({ credits: count });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const [warnings, sockets] = [[] as string[], new Set<Socket>()];
    const hear = ({ message }: Error) => void warnings.push(message);
    process.on('warning', hear);
    try {
      for (let n = 0; n < count; n++) {
        const target = `${api.url}/v1/media/metadata?query=https://example.com/${n}`;
        const [answer] = await once(get(target, { agent, headers: { 'x-api-key': key } }), 'response');
        sockets.add(answer.socket);
        expect([answer.statusCode, (await buffer(answer)).length > 0]).to.deep.equal([200, true]);
      }
    } finally {
      process.off('warning', hear);
      agent.destroy();
    }
    expect([sockets.size, warnings]).to.deep.equal([1, []]);
  });
});
