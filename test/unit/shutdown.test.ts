import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { makeShutdown } from '../../src/base/shutdown.ts';

const never = () => new Promise<void>(() => {});

async function errorsOf(running: Promise<void>): Promise<string[]> {
  try {
    await running;
  } catch (error) {
    if (error instanceof AggregateError) return error.errors.map((each: Error) => each.message);
    throw error;
  }
  return [];
}

describe('the shutdown', () => {
  it('releases the parts in reverse order, and waits for each', async () => {
    const stop = makeShutdown();
    const seen: string[] = [];
    stop.add('a', () => seen.push('a'));
    stop.add('b', async () => {
      seen.push('b begins');
      await turn();
      seen.push('b ends');
    });
    stop.add('c', () => seen.push('c'));
    await stop.run();
    expect(seen).to.deep.equal(['c', 'b begins', 'b ends', 'a']);
  });

  it('releases all parts although some throw, and reports each error with its name', async () => {
    const stop = makeShutdown();
    const seen: string[] = [];
    stop.add('first', () => seen.push('first'));
    stop.add('second', () => Promise.reject(new Error('late')));
    stop.add('third', () => {
      throw new Error('at once');
    });
    expect(await errorsOf(stop.run())).to.deep.equal(['third: at once', 'second: late']);
    expect(seen).to.deep.equal(['first']);
  });

  it('keeps a thrown error as the cause', async () => {
    const stop = makeShutdown();
    const cause = new Error('why');
    stop.add('one', () => Promise.reject(cause));
    const thrown: unknown = await stop.run().catch((error) => error);
    expect(thrown).to.be.instanceOf(AggregateError).with.property('message', 'one: why');
    expect(thrown).to.have.nested.property('errors[0].cause', cause);
  });

  it('gives the same promise when run again, and releases once', async () => {
    const stop = makeShutdown();
    let times = 0;
    stop.add('one', () => {
      times += 1;
    });
    const running = stop.run();
    expect(stop.run()).to.equal(running);
    await running;
    expect(stop.run()).to.equal(running);
    expect(times).to.equal(1);
  });

  it('gives the same promise to a release that runs it again', async () => {
    const stop = makeShutdown();
    const promises: Promise<void>[] = [];
    stop.add('one', () => void promises.push(stop.run()));
    const running = stop.run();
    await running;
    expect(promises).to.deep.equal([running]);
    expect(promises[0]).to.equal(running);
  });

  it('does not wait longer than the limit, and names the part that was not released', async () => {
    const stop = makeShutdown();
    const seen: string[] = [];
    stop.add('first', () => seen.push('first'));
    stop.add('hung', never, 0.01);
    expect(await errorsOf(stop.run())).to.deep.equal(['hung: not released within 0.01 s']);
    expect(seen).to.deep.equal(['first']);
  });

  it('waits for a release that ends within its limit', async () => {
    const stop = makeShutdown();
    stop.add('slow', () => turn(), 4);
    expect(await errorsOf(stop.run())).to.deep.equal([]);
  });

  it('ignores a failure that comes after the limit', async () => {
    const stop = makeShutdown();
    const { promise, reject } = Promise.withResolvers<void>();
    stop.add('hung', () => promise, 0.001);
    expect(await errorsOf(stop.run())).to.have.length(1);
    // An unhandled rejection would fail the run of the tests.
    reject(new Error('too late'));
    await turn();
  });

  it('releases a part that is added while it runs', async () => {
    const stop = makeShutdown();
    const seen: string[] = [];
    stop.add('opener', () => stop.add('inner', () => seen.push('inner')));
    await stop.run();
    expect(seen).to.deep.equal(['inner']);
  });

  it('refuses a part that is added after its end', async () => {
    const stop = makeShutdown();
    await stop.run();
    expect(() => stop.add('late', () => {})).to.throw('late was opened after everything was released');
  });
});
