import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { keys } from '../../src/store/keys.ts';
import { chart } from '../support/chart.ts';
import { makeBackupVolume } from '../support/cluster/backup-volume.ts';
import { type ChartGround, namespace, type ReachableRedis, startChartGround } from '../support/cluster/chart-ground.ts';
import { apply, kubectl } from '../support/cluster/kubectl.ts';
import { openRelaxedRedis } from '../support/cluster/reachable-redis.ts';
import type { Json } from '../support/json.ts';
import { type OperatorServer, startOperatorServer } from '../support/operator-server.ts';
import { readPreparation } from '../support/procedures.ts';
import { aFolder, type TestRecord } from '../support/redis.ts';
import { makeRedisUser, refusedCommands } from '../support/redis-rights.ts';
import { until } from '../support/until.ts';
import { type CallerPod, startCallerPod } from './caller-pod.ts';
import { expectEachChargedOnce, listFailed, submitInFlight } from './jobs-in-flight.ts';
import { claim, type OperatorShell, openOperatorShell } from './operator-shell.ts';

const credits = 1_000;
const oldKey = 'previous';
const mailUrlOf = (user: string) => `smtp://${user}:word@mail.test`;
const passwords = { OLD_PASSWORD: 'first', NEW_PASSWORD: 'second' } as const;

/** Only in the long form: every run has these procedures on one machine. */
if (process.env.ROUNDS !== undefined) {
  describe('docs/operate.md in a cluster', function () {
    this.timeout(900_000);
    const { folder, remove } = aFolder();
    /** Jobs that the record knows. */
    const ids: string[] = [];
    let ground: ChartGround;
    let redis: TestRecord;
    let server: OperatorServer;
    let shell: OperatorShell;
    let caller: CallerPod | undefined;
    let other: ReachableRedis | undefined;
    let key: string;

    before(async () => {
      ground = await startChartGround((address) =>
        openRelaxedRedis(address, (started) => {
          redis = started;
          return makeRedisUser(redis, { password: passwords.OLD_PASSWORD });
        }),
      );
      await makeBackupVolume(ground, claim);
      await setSecret('store', await ground.s3.addUser('FIRST'));
      await setSecret('trawl', { [oldKey]: await getSecret('trawl', 'secret') });
      const billing = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'trawl-billing', namespace } };
      await apply(ground.cluster, { ...billing, stringData: { 'smtp-url': mailUrlOf('first') } });
      const mail = 'billing.existingSecret=trawl-billing,settings.TRAWL_MAIL_FROM=trawl@example.com';
      const more = ['--set', `secret.oldKey=${oldKey},redis.durability=relaxed,${mail}`];
      await ground.succeed('install', 'trawl', chart, ...ground.values, ...more);
      key = await ground.openAccount('trawl', 'films', credits);
      shell = await openOperatorShell(ground, folder);
      server = await startOperatorServer({ END_FIRST: () => ground.s3.removeUser('FIRST') });
    });
    after(async () => {
      await server?.stop();
      await other?.stop();
      await ground?.close();
      remove();
    });

    const inNamespace = (...words: string[]) => kubectl(ground.cluster, [...words, '-n', namespace]);
    const setSecret = (name: string, stringData: object) =>
      inNamespace('patch', 'secret', name, '--patch', JSON.stringify({ stringData }));
    const getSecret = async (name: string, member: string) => {
      const found = await inNamespace('get', 'secret', name, '-o', `jsonpath={.data.${member}}`);
      return Buffer.from(found, 'base64').toString();
    };
    const get = async (path: string) => {
      const { status } = await ground.podOf('api');
      return fetch(`http://${status.podIP}:8080${path}`, { headers: { 'x-api-key': key }, redirect: 'manual' });
    };
    const complete = async () => expect(await listFailed(ground, key, ids)).to.deep.equal([]);
    /** Checks that the link of each job leads to its file. */
    const followLinks = async () => {
      for (const id of ids) {
        const { result } = await ground.ask(key, `/v1/jobs/${id}`);
        const link = new URL(result.response);
        const { status, headers } = await get(link.pathname + link.search);
        expect(status, link.href).to.equal(307);
        const file = await fetch(headers.get('location') ?? '');
        expect([file.status, (await file.arrayBuffer()).byteLength], link.href).to.deep.equal([200, result.bytes]);
      }
    };
    /** Runs a procedure while a job is in flight and a caller asks all the time; everything goes on, and every link lives. */
    const change = async (title: string, names: Record<string, string>, lines = '') => {
      const flight = await submitInFlight(ground, key, 1);
      await shell.run(title, names, (script) => lines + script);
      flight.letGo();
      const before = (await caller!.jobs()).length;
      await until(async () => (await caller!.jobs()).length > before, 60, 'the caller submits another job');
      expect(await caller!.complaints()).to.deep.equal([]);
      ids.push(...flight.ids, ...(await caller!.jobs()).filter((id) => !ids.includes(id)));
      await complete();
      await followLinks();
    };

    it('leads neither workers nor commands for the controller to the pod of an operator', async () => {
      const { metadata } = await ground.podOf('controller');
      const slices = ['get', 'endpointslices', '-l', 'kubernetes.io/service-name=trawl-gateway', '-o', 'json'];
      const addresses: Json[] = JSON.parse(await inNamespace(...slices)).items.flatMap(
        ({ endpoints }: Json) => endpoints,
      );
      const open = addresses.filter(({ conditions }) => conditions.ready).map(({ targetRef }) => targetRef.name);
      expect(open).to.deep.equal([metadata.name]);
      const line = ['exec', '-n', namespace, 'deployment/trawl-controller', '--', 'node', '-p', 'process.env.HOSTNAME'];
      expect((await kubectl(ground.cluster, line)).trim()).to.equal(metadata.name);
    });

    it('backs the record up and restores it: nothing is charged twice, and a later job is listed', async () => {
      const flight = await submitInFlight(ground, key, 1);
      ids.push(...flight.ids);
      expect(await shell.run('back up the record')).to.match(/ has the record of /);
      flight.letGo();
      await complete();
      const late = await ground.submit(key, '/films/clip.mp4');
      expect(await listFailed(ground, key, [late])).to.deep.equal([]);
      expect(await shell.run('restore the record')).to.include(`${late}\n`);
      await expectEachChargedOnce(ground, 'trawl', { key, credits, ids });
      expect((await get(`/v1/jobs/${late}`)).status).to.equal(404);
    });

    it('stops for maintenance with nothing open, and goes on afterwards', async () => {
      const flight = await submitInFlight(ground, key, 1);
      ids.push(...flight.ids);
      const run = shell.run('stop for maintenance with nothing open', { DRAIN_SECONDS: '240' });
      const isDraining = async () => (await redis.connection.send(['EXISTS', keys.drain])) === 1;
      await until(isDraining, 60, 'the drain begins');
      const refusal = await get(
        `/v1/video/download?query=${encodeURIComponent(`${ground.source.url}/films/clip.mp4`)}`,
      );
      flight.letGo();
      await run;
      expect([refusal.status, refusal.headers.get('x-error-code')]).to.deep.equal([503, 'draining']);
      await complete();
      ids.push(await ground.submit(key, '/films/clip.mp4'));
      await complete();
    });

    it('changes the keys of S3, which pods have as variables, by a rolling restart: nothing is refused or lost', async () => {
      caller = await startCallerPod(ground, key);
      const { AWS_ACCESS_KEY_ID: ID, AWS_SECRET_ACCESS_KEY: SECRET } = await ground.s3.addUser('SECOND');
      const words = '--arg AWS_ACCESS_KEY_ID "$ID" --arg AWS_SECRET_ACCESS_KEY "$SECRET"';
      await change('change another password or key', {
        ...{ ID, SECRET, MAKE_NEW: 'true', USE_NEW: `change_secret store ${words}` },
        // Old pods end meanwhile.
        ...{ WAIT_SECONDS: '30', END_OLD: server.commands.END_FIRST! },
      });
    });

    it('changes the password of mail with the words of the page', async () => {
      const TRAWL_SMTP_URL = mailUrlOf('second');
      const names = { MAKE_NEW: 'true', USE_NEW: 'eval "$USE_TRAWL_SMTP_URL"', WAIT_SECONDS: '0', END_OLD: 'true' };
      const lines = readPreparation('Secrets', 'change_secret');
      await change('change another password or key', { ...names, TRAWL_SMTP_URL }, lines);
      for (const part of ['api', 'controller'] as const) {
        const { metadata } = await ground.podOf(part);
        const line = ['exec', '-n', namespace, metadata.name, '--', 'node', '-p', 'process.env.TRAWL_SMTP_URL'];
        expect((await kubectl(ground.cluster, line)).trim(), part).to.equal(TRAWL_SMTP_URL);
      }
    });

    it('changes the password of Redis', async () => {
      const url = await getSecret('redis', 'url');
      await change('change the password of Redis', {
        ...{ ...passwords, REDIS_ADMIN_URL: redis.url, REDIS_USER: 'trawl' },
        TRAWL_REDIS_URL: url.replace(passwords.OLD_PASSWORD, passwords.NEW_PASSWORD),
        USE_TRAWL_REDIS_URL: 'change_secret redis --arg url "$TRAWL_REDIS_URL"',
      });
      expect(await refusedCommands(redis)).to.deep.equal([]);
    });

    it('changes TRAWL_SECRET, and every link made with the old value lives', async () => {
      await change('change TRAWL_SECRET', {
        OLD_SECRET: await getSecret('trawl', 'secret'),
        NEW_SECRET: randomBytes(32).toString('base64'),
        USE_TRAWL_SECRET_OLD: `change_secret trawl --arg ${oldKey} "$TRAWL_SECRET_OLD"`,
        USE_TRAWL_SECRET: 'change_secret trawl --arg secret "$TRAWL_SECRET"',
      });
    });

    it('has refused no call and charged each job once', async () => {
      const calls = await caller!.stop();
      expect(await caller!.complaints()).to.deep.equal([]);
      ids.push(...(await caller!.jobs()).filter((id) => !ids.includes(id)));
      await expectEachChargedOnce(ground, 'trawl', { key, credits, ids });
      console.log(`        ${calls} calls, ${ids.length} jobs`);
    });

    it('moves to another Redis with nothing lost', async () => {
      other = await openRelaxedRedis(ground.network.address);
      await shell.makePod();
      const [own, inCluster] = [
        'export TRAWL_REDIS_URL="$NEW_REDIS_URL"\n',
        readPreparation('Procedure: move to another Redis').replace('trawl-redis', 'redis'),
      ];
      await shell.run('move to another Redis', { NEW_REDIS_URL: other.url }, (script) => {
        expect(script).to.include(own);
        return script.replace(own, () => inCluster);
      });
      ids.push(await ground.submit(key, '/films/clip.mp4'));
      await expectEachChargedOnce(ground, 'trawl', { key, credits, ids });
      expect(await redis.connection.send(['CLIENT', 'LIST', 'TYPE', 'normal'])).not.to.include('user=trawl');
    });
  });
}
