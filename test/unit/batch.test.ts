import { expect } from 'chai';
import { batchText, countItems, expandPlaylist, parseBatch } from '../../src/model/batch.ts';
import { summarize } from '../../src/model/batch-summary.ts';
import { maxBatchItems } from '../../src/model/request-limits.ts';

const query = 'https://example.com/film.mp4';
const items = [{ query }];

describe('the parameters of a batch', () => {
  const wrong: readonly (readonly [string, Readonly<Record<string, unknown>>, string])[] = [
    ['no endpoint', { items }, 'endpoint'],
    ['an unknown endpoint', { endpoint: 'retry', items }, 'endpoint must be one of video, audio, metadata'],
    ['no items', { endpoint: 'video' }, `items must be a list of 1 to ${maxBatchItems} objects`],
    ['an empty list of items', { endpoint: 'video', items: [] }, 'items must be a list of 1 to'],
    ['1,001 items', { endpoint: 'video', items: Array(1001).fill({ query }) }, 'items must be a list of 1 to 1000 obj'],
    ['items that are no list', { endpoint: 'video', items: { query } }, 'items must be a list'],
    ['a list as an item', { endpoint: 'video', items: [{ query }, []] }, 'items[1] must be an object'],
    [
      'an item with a wrong parameter',
      { endpoint: 'audio', items: [{ query, audio_format: 'x' }] },
      'items[0]: audio_format',
    ],
    [
      'a part without length',
      { endpoint: 'video', items: [{ query, start: 5, end: 5 }] },
      'items[0]: end must be greater',
    ],
    ['max_credits of 0', { endpoint: 'video', items, max_credits: 0 }, 'max_credits must be a whole number'],
    [
      'fewer max_credits than items',
      { endpoint: 'video', items: [...items, ...items], max_credits: 1 },
      'max_credits is 1',
    ],
    ['a webhook at a local address', { endpoint: 'video', items, webhook_url: 'http://127.0.0.1/' }, 'webhook_url'],
    [
      'two playlists',
      { endpoint: 'video', items: [...items, ...items], playlist: true },
      'items must be a list of the one',
    ],
    ['max_items of 0', { endpoint: 'video', items, max_items: 0 }, 'max_items must be a whole number from 1 to 1000'],
    ['max_items of 1001', { endpoint: 'video', items, max_items: 1001 }, 'max_items must be a whole number'],
    [
      'fewer max_items than items',
      { endpoint: 'video', items: [...items, ...items], max_items: 1 },
      'max_items is 1, but',
    ],
    ['a wrong global parameter', { endpoint: 'video', items, soft_fail: 'maybe' }, 'soft_fail'],
  ];
  for (const [title, given, start] of wrong) {
    it(`are refused with ${title}`, () => {
      const parsed = parseBatch(given, []);
      expect(parsed.ok ? '' : parsed.sentence.startsWith(`Bad Request: ${start}`), JSON.stringify(parsed)).to.equal(
        true,
      );
    });
  }

  const taken: readonly (readonly [string, Readonly<Record<string, unknown>>, object])[] = [
    ['no limits', {}, { maxItems: 1000, maxCredits: null, isPlaylist: false }],
    ['as many max_items as items', { max_items: 2 }, { maxItems: 2 }],
    ['as many max_credits as items', { max_credits: 2 }, { maxCredits: 2 }],
    ['1,000 items', { items: Array(1000).fill({ query }) }, { maxItems: 1000 }],
    ['a playlist of one credit', { items, playlist: true, max_items: 1, max_credits: 1 }, { isPlaylist: true }],
    ['no webhook', {}, { webhook_url: null, webhook_authorization: null }],
    [
      'a webhook of its own',
      { webhook_url: 'https://example.com/hook', webhook_authorization: 'hush' },
      { webhook_url: 'https://example.com/hook', webhook_authorization: 'hush' },
    ],
  ];
  for (const [title, given, read] of taken) {
    it(`are taken with ${title}`, () => {
      const two = { endpoint: 'video', items: [...items, ...items] };
      expect(parseBatch({ ...two, ...given }, [])).to.deep.include({ ok: true, ...read });
    });
  }

  it('make every item of metadata a job', () => {
    const parsed = parseBatch({ endpoint: 'metadata', items: [{ query, is_async: false }] }, []);
    expect(parsed.ok && parsed.items[0]?.args).to.deep.equal({ query, is_async: true });
  });

  it('count 1 to 1,000 items, also when they are wrong', () => {
    const counted = [{}, { items: 'x' }, { items: [] }, { items: [1, 2] }, { items: Array(5000) }].map(countItems);
    expect(counted).to.deep.equal([1, 1, 1, 2, maxBatchItems]);
  });
});

describe('the entries of a playlist', () => {
  const wanted = (given: object = {}, item: object = {}) => {
    const parsed = parseBatch({ endpoint: 'video', playlist: true, items: [{ query, ...item }], ...given }, []);
    if (!parsed.ok) throw new Error(parsed.sentence);
    return parsed;
  };

  it('become items with the parameters of the one that named the playlist', () => {
    const webhook = { webhook_url: 'https://example.com/hook', webhook_authorization: 'hush' };
    const expanded = expandPlaylist(wanted({}, { video_quality: '360p', ...webhook }), ['https://a.example/1#x'], []);
    expect(expanded.ok && expanded.items).to.have.length(1);
    const [item] = expanded.ok ? expanded.items : [];
    expect(item).to.deep.include(webhook);
    expect(item?.args).to.deep.include({ query: 'https://a.example/1#x', video_quality: '360p' });
    expect(item?.args.webhook_authorization).to.equal('***');
  });

  it('are left out when no caller could ask for them, and count once however they are spelled', () => {
    const spellings = [
      'https://a.example/1',
      'https://a.example/1',
      'HTTPS://A.example:443/2/../1',
      'https://a.example/1#',
    ];
    const entries = ['http://127.0.0.1/x', 'ftp://a.example/', ...spellings, 'x'];
    const expanded = expandPlaylist(wanted(), entries, []);
    expect(expanded.ok && expanded.items.map(({ args }) => args.query)).to.deep.equal(['https://a.example/1']);
  });

  it('are at most max_items, and at most 1,000, however many a listing has that a page took over', () => {
    const entries = Array.from({ length: 1_500 }, (_, n) => `https://a.example/${n}`);
    const counts = [wanted({ max_items: 5 }), wanted()].map((request) => {
      const expanded = expandPlaylist(request, entries, []);
      return expanded.ok && expanded.items.length;
    });
    expect(counts).to.deep.equal([5, maxBatchItems]);
  });

  it('are refused when there is none, or more than max_credits', () => {
    const none = expandPlaylist(wanted(), ['http://127.0.0.1/x'], []);
    expect(none.ok || none.sentence).to.equal('Bad Request: the playlist has no entries that can be asked for');
    const many = expandPlaylist(wanted({ max_credits: 1 }), ['https://a.example/1', 'https://a.example/2'], []);
    expect(many.ok || many.sentence).to.equal('Bad Request: max_credits is 1, but the playlist has 2 entries');
    const enough = expandPlaylist(wanted({ max_credits: 2 }), ['https://a.example/1', 'https://a.example/2'], []);
    expect(enough.ok && enough.items).to.have.length(2);
  });

  it('make another request than the item alone, and than another limit (D12)', () => {
    const others = [{}, { max_items: 3 }, { max_items: 4 }, { max_credits: 3 }, { max_credits: 4 }];
    const withLimits = others.map((limits) => parseBatch({ endpoint: 'video', items, ...limits }, []));
    const texts = [...withLimits, ...others.map((limits) => wanted(limits))];
    expect(new Set(texts.map((one) => one.ok && batchText(one))).size).to.equal(10);
  });
});

describe('the text of a batch (D12)', () => {
  const webhook = { webhook_url: 'https://example.com/hook', webhook_authorization: 'hush' };
  const textOf = (given: object) => {
    const parsed = parseBatch({ endpoint: 'video', items, ...given }, []);
    return parsed.ok ? batchText(parsed) : parsed.sentence;
  };

  it('is the same for another spelling of the same items', () => {
    const spelled = { items: [{ query: 'HTTPS://example.com:443/film.mp4', video_quality: 'best' }] };
    expect(textOf(spelled)).to.equal(textOf({}));
  });

  for (const [what, given] of [
    ['another endpoint', { endpoint: 'audio' }],
    ['another URL', { items: [{ query: 'https://example.com/other.mp4' }] }],
    ['another quality of an item', { items: [{ query, video_quality: '360p' }] }],
    ['a second item', { items: [...items, ...items] }],
    ['a webhook of an item', { items: [{ query, ...webhook }] }],
    ['a webhook of the batch', webhook],
  ] as const) {
    it(`is another for ${what}`, () => expect(textOf(given)).not.to.equal(textOf({})));
  }

  it('tells the authorizations of its own webhook and of those of its items apart', () => {
    const other = { ...webhook, webhook_authorization: 'hello' };
    expect(textOf(webhook)).not.to.equal(textOf(other));
    expect(textOf({ items: [{ query, ...webhook }] })).not.to.equal(textOf({ items: [{ query, ...other }] }));
  });
});

describe('the status of a batch', () => {
  const none = { queued: 0, running: 0, completed: 0, failed: 0 };
  const rows = [
    ['a job that waits', { ...none, queued: 1, completed: 2 }, true, 'Running', 1, 2],
    ['a job that runs', { ...none, running: 1, failed: 2 }, false, 'Running', 1, 0],
    ['ended jobs alone', { ...none, completed: 3, failed: 1 }, false, 'Completed', 0, 3],
    ['ended jobs alone after it was cancelled', { ...none, completed: 3 }, true, 'Cancelled', 0, 3],
  ] as const;
  for (const [title, counts, isCancelled, status, held, charged] of rows) {
    it(`is ${status} with ${title}`, () => {
      expect(summarize({ id: 'b', isCancelled }, counts)).to.deep.equal({
        ...{ id: 'b', status, counts },
        credits: { held, charged },
      });
    });
  }
});
