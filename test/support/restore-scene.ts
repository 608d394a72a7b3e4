import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeSeal } from '../../src/base/seal.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import { invitePerson } from '../../src/store/people/invite-person.ts';
import { prepareSchema } from '../../src/store/schema.ts';
import { runBeside } from './backups.ts';
import type { Json } from './json.ts';
import { aSecret } from './people-scenarios.ts';
import { storeOf, type TestStore } from './record.ts';
import { aFolder, startTestServer, type TestRecord } from './redis.ts';

/** A record that is backed up, and an empty one that the backup is put into. */
export interface RestoreScene {
  readonly source: TestRecord;
  readonly target: TestRecord;
  readonly store: TestStore;
  readonly restored: TestStore;
  /** Data folder of both, removed afterwards. */
  readonly folder: string;
  readonly objects: FolderStore;
  readonly backups: string;
  /** One `admin` command beside the record that is backed up. */
  admin(...line: string[]): Promise<Json>;
  /** Takes a backup with these options; returns its manifest. */
  backUp(...options: string[]): Promise<Json>;
  /** Restores the newest backup with these options. */
  restore(...options: string[]): ReturnType<typeof runBeside>;
  restoreFrom(folder: string): ReturnType<typeof runBeside>;
}

/** Gives each test of a suite such a scene; the suite has the two servers for itself. */
export function eachWithRestoreScene(give: (scene: RestoreScene) => void): void {
  let [source, target]: TestRecord[] = [];
  let remove = () => {};
  before(async () => {
    [source, target] = await Promise.all([startTestServer(), startTestServer()]);
  });
  after(() => Promise.all([source?.stop(), target?.stop()]));
  beforeEach(async () => {
    const scene = await makeScene(source!, target!);
    remove = scene.remove;
    give(scene);
  });
  afterEach(() => remove());
}

async function makeScene(source: TestRecord, target: TestRecord): Promise<RestoreScene & { remove: () => void }> {
  await Promise.all([source.flush(), target.flush()]);
  const [store, restored] = [storeOf(source.connection), storeOf(target.connection)];
  await prepareSchema(store);
  const { folder, remove } = aFolder();
  const seal = makeSeal({ secret: Buffer.alloc(32, 1), old: null });
  const objects = await openFolder({ folder: join(folder, 'objects'), seal, now: Date.now });
  writeFileSync(join(folder, 'secret'), Buffer.alloc(32, 1).toString('base64'));
  const backups = join(folder, 'backups');
  const beside = ({ url }: TestRecord, ...line: string[]) =>
    runBeside(line, { TRAWL_REDIS_URL: url, TRAWL_DATA: folder });
  const admin = async (...line: string[]) => {
    const { code, json, out } = await beside(source, ...line);
    expect(code, out).to.equal(0);
    return json;
  };
  return {
    ...{ source, target, store, restored, folder, remove, objects, backups },
    admin,
    backUp: (...options) => admin('record', 'backup', backups, ...options),
    restore: (...options) => beside(target, 'record', 'restore', backups, ...options),
    restoreFrom: (given) => beside(target, 'record', 'restore', given),
  };
}

/** Returns the id of a person who was invited and has a link. */
export async function invite(store: TestStore, accountId: string, email: string): Promise<string> {
  const { personId, text: secret } = aSecret(email);
  await invitePerson(store, { accountId, email, role: 'owner', secret, isBound: false });
  return personId;
}
