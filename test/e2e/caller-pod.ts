import { type ChartGround, namespace } from '../support/cluster/chart-ground.ts';
import { workerImage } from '../support/cluster/image.ts';
import { apply, kubectl } from '../support/cluster/kubectl.ts';
import { until } from '../support/until.ts';

/** A pod that calls the Service of the API all the time. */
export interface CallerPod {
  /** Answers so far that were not as they should be. */
  readonly complaints: () => Promise<string[]>;
  /** Ids of the jobs that it has submitted. */
  readonly jobs: () => Promise<string[]>;
  /** Has it call no more; what is above is then all, and the number of its calls comes back. */
  readonly stop: () => Promise<number>;
}

const name = 'caller';

/** Asks for the usage four times a second and now and then for a download, each on a connection of its own, and repeats nothing. */
const script = `
const http = require('node:http');
const { URL_OF_API, KEY, FILM } = process.env;
const ask = (path) => new Promise((resolve, reject) => {
  const options = { agent: false, headers: { 'x-api-key': KEY }, timeout: 120000 };
  const call = http.get(URL_OF_API + path, options, (answer) => {
    let text = '';
    answer.on('data', (bytes) => (text += bytes)).on('error', reject);
    answer.on('end', () => resolve({ status: answer.statusCode, text }));
  });
  call.on('timeout', () => call.destroy(new Error('no answer within 120 s'))).on('error', reject);
});
let isOver = false;
process.on('SIGUSR2', () => { isOver = true; });
(async () => {
  let calls = 0;
  while (!isOver) {
    const path = calls++ % 120 === 0 ? '/v1/video/download?query=' + encodeURIComponent(FILM) : '/v1/usage';
    const { status, text } = await ask(path).catch((error) => ({ status: 0, text: String(error) }));
    if (status === 202) console.log('job ' + JSON.parse(text).job_id);
    else if (status !== 200) console.log('complaint ' + path + ' ' + status + ' ' + text);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  console.log('calls ' + calls);
  setInterval(() => undefined, 9999);
})();
`;

/** Starts it with the key of an account. */
export async function startCallerPod({ cluster, source }: ChartGround, key: string): Promise<CallerPod> {
  const env = { URL_OF_API: `http://trawl-api.${namespace}.svc`, KEY: key, FILM: `${source.url}/films/clip.mp4` };
  const container = {
    name,
    image: workerImage.replace('trawl-worker', 'trawl-server'),
    command: ['node', '-e', script],
    env: Object.entries(env).map(([variable, value]) => ({ name: variable, value })),
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
  };
  const securityContext = { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } };
  const spec = {
    ...{ containers: [container], securityContext, restartPolicy: 'Never', terminationGracePeriodSeconds: 1 },
    ...{ automountServiceAccountToken: false, enableServiceLinks: false },
  };
  await apply(cluster, { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec });
  await kubectl(cluster, ['wait', 'pod', name, '-n', namespace, '--for=condition=Ready', '--timeout=240s']);
  const listLines = async (first: string) => {
    const said = (await kubectl(cluster, ['logs', name, '-n', namespace])).split('\n');
    return said.filter((line) => line.startsWith(`${first} `)).map((line) => line.slice(first.length + 1));
  };
  return {
    complaints: () => listLines('complaint'),
    jobs: () => listLines('job'),
    stop: async () => {
      await kubectl(cluster, ['exec', name, '-n', namespace, '--', 'node', '-e', "process.kill(1, 'SIGUSR2')"]);
      const calls = await until(async () => (await listLines('calls'))[0], 30, 'the caller has ended');
      return Number(calls);
    },
  };
}
