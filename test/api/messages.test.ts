import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import express from 'express';
import { messagesOf } from '../../src/api/messages.ts';

describe('requests and answers', () => {
  it('are from the start what Express makes of them, and can do what it gives them', async () => {
    const app = express();
    app.get('/here/:id', (req, res) => void res.json({ id: req.params.id, query: req.query, same: req.app === app }));
    let isChanged = true;
    const server = createServer(messagesOf(app), (req, res) => {
      const before = [Object.getPrototypeOf(req), Object.getPrototypeOf(res)];
      app(req, res);
      isChanged = Object.getPrototypeOf(req) !== before[0] || Object.getPrototypeOf(res) !== before[1];
    }).listen(0, '127.0.0.1');
    try {
      await new Promise((resolve) => server.once('listening', resolve));
      const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/here/7?a=b`);
      expect(await answer.json()).to.deep.equal({ id: '7', query: { a: 'b' }, same: true });
      expect(isChanged).to.equal(false);
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });
});
