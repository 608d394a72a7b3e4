import { hash } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeAuthority, makeCertificate } from '../support/certificate.ts';
import { type ClientOutcome, clientNames, startClientDriver } from '../support/client-driver.ts';
import { startClosedProxy } from '../support/closed-proxy.ts';
import { aFolder } from '../support/redis.ts';
import { runAtStandIn } from '../support/stand-in-service.ts';

describe('a client of callers that no waiting helps', () => {
  let server: Server;
  let url: string;
  let connections: number;
  before(async () => {
    server = createServer(makeCertificate('127.0.0.1'));
    server.on('connection', () => {
      connections += 1;
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => void server.close());
  beforeEach(() => {
    connections = 0;
  });

  const expectEnd = ({ error }: ClientOutcome) => {
    expect(error).to.include({ code: 'unreachable', retryable: false, status: null });
    expect(error?.sentence)
      .to.match(/certificate/)
      .and.include(`No way to ${url}: `);
    expect(connections).to.equal(1);
  };

  for (const name of clientNames) {
    it(`ends a call at once and says why when it does not trust a certificate, in ${name}`, async () => {
      const service = { url, key: 'k', patienceSeconds: 2 };
      expectEnd(await runAtStandIn(name, () => {}, { service }));
    });

    it(`ends the fetching of a file at once and names its host when it does not trust its certificate, in ${name}`, async () => {
      const result = { response: `${url}/file`, bytes: 8, sha256: 'f', content_type: 'video/mp4' };
      const job = { id: '1', job_id: '1', status: 'CompletedJob', endpoint: '/v1/video/download', result };
      const answer: Parameters<typeof runAtStandIn>[1] = (path, response) => {
        if (!path.includes('/events')) return void response.end(JSON.stringify(job));
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.end(`id: 1\nevent: end\ndata: ${JSON.stringify(job)}\n\n`);
      };
      expectEnd(await runAtStandIn(name, answer, { verb: 'download' }, 2));
    });

    it(`ends a call at once and says why when https is asked of a port that speaks http, in ${name}`, async () => {
      const plain = createHttpServer().listen(0, '127.0.0.1');
      let tries = 0;
      plain.on('connection', () => {
        tries += 1;
      });
      try {
        await once(plain, 'listening');
        const service = {
          url: `https://127.0.0.1:${(plain.address() as AddressInfo).port}`,
          key: 'k',
          patienceSeconds: 2,
        };
        const { error } = await runAtStandIn(name, () => {}, { service });
        expect([error?.code, error?.retryable, tries]).to.deep.equal(['unreachable', false, 1]);
        expect(error?.sentence).to.match(/wrong version number/i);
      } finally {
        plain.close();
      }
    });

    it(`ends a call at once and says why when a forward proxy wants a password, in ${name}`, async () => {
      const proxy = await startClosedProxy('407 Proxy Authentication Required');
      const driver = startClientDriver(name, proxy.env);
      try {
        const service = { url: 'https://trawl.example', key: 'k', patienceSeconds: 2 };
        const { error } = await driver.run({ verb: 'start', url: 'https://a.example', service });
        expect(error).to.include({ code: 'unreachable', retryable: false, status: null });
        expect(error?.sentence).to.include('No way to https://trawl.example: ').and.include('407');
        expect(proxy.asked).to.deep.equal(['trawl.example:443']);
      } finally {
        await driver.stop();
        await proxy.stop();
      }
    });

    it(`goes on with a job that was accepted once a wrong certificate of the service is right again, in ${name}`, async () => {
      const { folder, remove } = aFolder();
      const authority = makeAuthority('Trusted');
      const trusted = authority.issue({ name: 'trawl', hosts: ['127.0.0.1'] });
      const authorities = join(folder, 'authorities.pem');
      writeFileSync(authorities, authority.cert);
      const driver = startClientDriver(name, { NODE_EXTRA_CA_CERTS: authorities, SSL_CERT_FILE: authorities });
      let distrusted = 0;
      const service = createServer(trusted, ({ url: path = '', method }, response) => {
        response.setHeader('connection', 'close');
        if (method === 'POST') {
          service.setSecureContext(makeCertificate('127.0.0.1'));
          service.on('connection', onDistrusted);
          return void response.writeHead(202).end('{"job_id":"1"}');
        }
        if (path === '/file') return void response.end('film');
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.end(`id: 1\nevent: end\ndata: ${JSON.stringify(job)}\n\n`);
      });
      const onDistrusted = () => {
        distrusted += 1;
        if (distrusted < 2) return;
        service.off('connection', onDistrusted);
        service.setSecureContext(trusted);
      };
      await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
      const own = `https://127.0.0.1:${(service.address() as AddressInfo).port}`;
      const sha256 = hash('sha256', 'film');
      const result = { response: `${own}/file`, bytes: 4, sha256, content_type: 'video/mp4' };
      const job = { id: '1', status: 'CompletedJob', endpoint: '/v1/video/download', result };
      try {
        const asked = { url: own, key: 'k', patienceSeconds: 60 };
        const { value, error } = await driver.run({ verb: 'download', url: 'https://a.example', service: asked });
        expect(error).to.equal(undefined);
        expect(value).to.include({ job_id: '1', bytes: sha256 });
        expect(distrusted).to.equal(2);
      } finally {
        await driver.stop();
        service.close();
        remove();
      }
    });
  }
});
