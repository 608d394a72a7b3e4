import { expect } from 'chai';
import { requestKeys } from '../../src/client/get-order.ts';

const film = 'https://a.example/1';
const other = 'https://a.example/2';
const usual = { endpoint: 'video', parameters: {}, playlist: null } as const;
const keysOf = (urls: readonly string[], order: Parameters<typeof requestKeys>[1] = usual, commandKey = 'k') =>
  urls.map(requestKeys(commandKey, order));

describe('Idempotency-Keys of trawl get', () => {
  it('are the same for the same command with the same key, in whichever order its URLs stand', () => {
    const keys = keysOf([film, other, film]);
    expect(new Set(keys).size).to.equal(3);
    expect(keysOf([film, film, other])).to.have.members(keys);
    for (const key of keys) expect(key).to.match(/^k-[0-9a-f]{16}$/);
  });

  it('are others for another key, another kind of file and other options', () => {
    const all = [
      keysOf([film]),
      keysOf([film], usual, 'l'),
      keysOf([film], { ...usual, endpoint: 'audio' }),
      keysOf([film], { ...usual, parameters: { video_quality: '360p' } }),
      keysOf([film], { ...usual, playlist: 5 }),
    ];
    expect(new Set(all.flat()).size).to.equal(all.length);
  });
});
