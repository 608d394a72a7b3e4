import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { CreateBucketCommand, ListMultipartUploadsCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import type { BucketSettings } from '../../src/objects/s3-bucket.ts';
import { freePort } from './free-port.ts';
import { freezeProcess } from './freeze-process.ts';
import { runProgram } from './operator.ts';
import { aFolder } from './redis.ts';
import { tool } from './tools.ts';
import { until } from './until.ts';

/** A real S3 server with one bucket. */
export interface TestS3 {
  readonly settings: BucketSettings & { readonly s3Bucket: string; readonly s3Endpoint: string };
  /** The environment of a program that uses this server. */
  readonly env: Readonly<Record<string, string>>;
  readonly client: S3Client;
  /** Keys of the objects and of the uploads that are not finished. */
  readonly list: () => Promise<{ objects: string[]; uploads: string[] }>;
  /** Ends the server; gives what starts it again with all that it had. */
  readonly lose: () => Promise<() => Promise<void>>;
  /** Makes a user who may do everything in the bucket, or as `user` what a policy of the bucket says; returns its keys. */
  readonly addUser: (name: string, role?: 'admin' | 'user') => Promise<typeof credentials>;
  readonly removeUser: (name: string) => Promise<void>;
  /** Has the server answer nothing, until the function that it gives is called. */
  readonly freeze: () => Promise<() => void>;
  readonly stop: () => Promise<void>;
}

/** Credentials in the form of real ones, so that what hides those hides these. */
export const credentials = {
  AWS_ACCESS_KEY_ID: 'AKIATESTTESTTESTTEST',
  AWS_SECRET_ACCESS_KEY: 'CanaryS3Secret0123456789',
};

/** Starts an S3 server, and lets the SDK find its credentials in this process until it is stopped. */
export async function startS3(address = '127.0.0.1'): Promise<TestS3> {
  const { folder, remove } = aFolder();
  for (const name of ['iam', 'objects']) mkdirSync(join(folder, name));
  const port = await freePort(address);
  const s3Endpoint = `http://${address}:${port}`;
  let said = '';
  let child: ChildProcess;
  const start = async () => {
    const args = ['--port', `${address}:${port}`, '--iam-dir', join(folder, 'iam'), 'posix', join(folder, 'objects')];
    const keys = { ROOT_ACCESS_KEY: credentials.AWS_ACCESS_KEY_ID, ROOT_SECRET_KEY: credentials.AWS_SECRET_ACCESS_KEY };
    child = spawn(tool('versitygw'), args, { env: keys, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => (said += text));
    const isUp = () => fetch(s3Endpoint).then(Boolean, () => false);
    await until(isUp, 10, `versitygw answers: ${said}`);
  };
  const end = async () => {
    if (child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  await start();
  Object.assign(process.env, credentials);
  const client = new S3Client({ endpoint: s3Endpoint, region: 'us-east-1', forcePathStyle: true });
  const place = { Bucket: 'trawl-test' };
  await client.send(new CreateBucketCommand(place));
  const settings = { s3Bucket: place.Bucket, s3Endpoint, s3PublicEndpoint: null, s3Region: null, s3PathStyle: true };
  return {
    settings,
    env: {
      ...{ ...credentials, TRAWL_OBJECTS: 's3', TRAWL_S3_BUCKET: place.Bucket },
      ...{ TRAWL_S3_ENDPOINT: s3Endpoint, TRAWL_S3_PATH_STYLE: 'true' },
    },
    client,
    list: async () => {
      const { Contents = [] } = await client.send(new ListObjectsV2Command(place));
      const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand(place));
      return { objects: Contents.map(({ Key = '' }) => Key), uploads: Uploads.map(({ Key = '' }) => Key) };
    },
    lose: async () => {
      await end();
      return start;
    },
    addUser: (name, role = 'admin') => addUser(s3Endpoint, name, role),
    removeUser: (name) => administer(s3Endpoint, 'delete-user', '--access', name),
    freeze: () => freezeProcess(Number(child.pid)),
    stop: async () => {
      client.destroy();
      for (const name of Object.keys(credentials)) delete process.env[name];
      await end();
      remove();
    },
  };
}

async function addUser(endpoint: string, name: string, role: string): Promise<typeof credentials> {
  const secret = randomBytes(20).toString('hex');
  await administer(endpoint, 'create-user', '--access', name, '--secret', secret, '--role', role);
  return { AWS_ACCESS_KEY_ID: name, AWS_SECRET_ACCESS_KEY: secret };
}

/** Runs one command of the server's administrator. */
async function administer(endpoint: string, ...words: string[]): Promise<void> {
  const { AWS_ACCESS_KEY_ID: access, AWS_SECRET_ACCESS_KEY: secret } = credentials;
  const login = ['admin', '--access', access, '--secret', secret, '--endpoint-url', endpoint];
  const { code, out, err } = await runProgram(tool('versitygw'), [...login, ...words], {});
  if (code !== 0) throw new Error(`${words[0]}: ${out}${err}`);
}
