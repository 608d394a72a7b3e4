import { expect } from 'chai';
import type { Cursor } from '../../src/store/jobs/list-jobs.ts';
import { shortId } from '../../src/store/keys.ts';
import { listDeliveries } from '../../src/store/webhooks/read-deliveries.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import type { TestStore } from '../support/record.ts';
import { putDeliveries } from '../support/webhooks.ts';

const account = 'a';
const began = Date.UTC(2026, 0, 1);

describe('a list of webhooks', () => {
  let store: TestStore;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });

  /** Lists all pages; returns the ids of each, and how many commands it took. */
  const pagesOf = async (limit: number, failedOnly: boolean) => {
    const pages: { readonly ids: string[]; readonly commands: number }[] = [];
    for (let after: Cursor | null = null; ; ) {
      const before = store.connection.calls();
      const page: Awaited<ReturnType<typeof listDeliveries>> = await listDeliveries(store, account, {
        ...{ limit, failedOnly, after },
      });
      pages.push({ ids: page.deliveries.map(({ id }) => id), commands: store.connection.calls() - before });
      if (page.next === null) return pages;
      after = page.next;
    }
  };

  it('of failed ones looks at no more than 2,000 for a page, however many were delivered, and the next page goes on', async () => {
    const states = Array.from({ length: 5_000 }, (_, n) => (n % 1_700 === 0 ? 'failed' : 'delivered'));
    const ids = await putDeliveries(store, account, states, began);
    const pages = await pagesOf(100, true);
    expect(pages.flatMap((page) => page.ids)).to.deep.equal([ids[3_400], ids[1_700], ids[0]]);
    expect(pages).to.have.length(3);
    // One command for the state of each, and few for each 500 and for each that failed.
    for (const { commands } of pages) expect(commands).to.be.at.most(2_050);
  });

  it('has each once, in the order of time, also where a page ends between several of one millisecond', async () => {
    const states = Array.from({ length: 60 }, (_, n) => (n % 3 === 0 ? 'failed' : 'delivered'));
    const ids = await putDeliveries(store, account, states, began, 20);
    const inOrder = [...Array(3).keys()].flatMap((n) =>
      ids.slice(20 * n, 20 * n + 20).sort((one, other) => (shortId(one) < shortId(other) ? -1 : 1)),
    );
    const failed = new Set(ids.filter((_, n) => states[n] === 'failed'));
    for (const limit of [1, 7, 20, 60]) {
      const listed = async (failedOnly: boolean) => (await pagesOf(limit, failedOnly)).map((page) => page.ids);
      const all = await listed(false);
      expect(all.flat(), `${limit} a page`).to.deep.equal(inOrder.toReversed());
      expect(all, 'no page is empty').to.have.length(Math.ceil(60 / limit));
      expect((await listed(true)).flat()).to.deep.equal(inOrder.filter((id) => failed.has(id)).toReversed());
    }
  });
});
