import { expect } from 'chai';
import { maxTriedLength, readTried, type WebhookAttempt } from '../../src/model/webhook-attempts.ts';

const createdAt = Date.UTC(2026, 2, 4);

describe('the attempts to send a webhook, as the record keeps them', () => {
  const answered = (attempt: number, afterMs: number, ms: number, status: number | null): WebhookAttempt => {
    return { attempt, at: createdAt + afterMs, ms, status };
  };
  const rows: [what: string, tried: string, attempts: WebhookAttempt[]][] = [
    ['none before the first', '', []],
    ['one that was answered', '1:0:c8:200', [answered(1, 0, 200, 200)]],
    ['one without an answer', '1:5:2710:', [answered(1, 5, 10_000, null)]],
    [
      'three, with the waits between them',
      '1:0:2710: 2:ea60:1f:503 3:dbba0:20:200',
      [answered(1, 0, 10_000, null), answered(2, 60_000, 31, 503), answered(3, 900_000, 32, 200)],
    ],
    ['one that begins anew after a replay', '3:a:1:500 1:b:1:204', [answered(3, 10, 1, 500), answered(1, 11, 1, 204)]],
    ['what is whole of one that was cut', '1:0:c8:200 2:ea60', [answered(1, 0, 200, 200)]],
  ];
  for (const [what, tried, attempts] of rows) {
    it(`are ${what}`, () => {
      expect(tried.length).to.be.at.most(maxTriedLength);
      expect(readTried(tried, createdAt)).to.deep.equal(attempts);
    });
  }
});
