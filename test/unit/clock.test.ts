import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeClock } from '../../src/store/redis/redis-time.ts';
import { until } from '../support/until.ts';

describe('the clock', () => {
  let folder: string;
  let file: string;
  let clock: ReturnType<typeof makeClock> | undefined;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'clock-'));
    file = join(folder, 'clock');
  });
  afterEach(() => {
    clock?.close();
    rmSync(folder, { recursive: true });
  });

  function start(text: string) {
    writeFileSync(file, text);
    clock = makeClock(Date, file);
    return clock;
  }

  function isAhead(clock: ReturnType<typeof makeClock>, offsetMs: number): boolean {
    const low = Date.now() + offsetMs;
    const now = clock.now();
    return low <= now && now <= Date.now() + offsetMs;
  }

  /** Waits until a clock that was started now has read again: every other clock has then done so too. */
  async function passReading(): Promise<void> {
    const control = join(folder, 'control');
    const other = makeClock(Date, control);
    writeFileSync(control, '5');
    await until(() => other.offset() === 5_000, 2, 'a reading').finally(other.close);
  }

  it('without a file is the clock that it follows', () => {
    clock = makeClock(Date);
    expect(clock.offset()).to.equal(0);
    expect(isAhead(clock, 0)).to.equal(true);
  });

  const rows: [text: string, offsetMs: number][] = [
    ['0', 0],
    ['3600', 3_600_000],
    [' 86400.5\n', 86_400_500],
    ['-10', -10_000],
    ['0.0004', 0],
    ['', 0],
    ['soon', 0],
    ['1e3', 0],
    ['0x10', 0],
    ['NaN', 0],
    ['9'.repeat(30), 0],
  ];
  for (const [text, offsetMs] of rows) {
    it(`begins ${offsetMs} ms ahead with ${JSON.stringify(text)}`, () => {
      const clock = start(text);
      expect(clock.offset()).to.equal(offsetMs);
      expect(isAhead(clock, offsetMs)).to.equal(true);
    });
  }

  it('begins without an offset while its file is missing, and reads it then', async () => {
    clock = makeClock(Date, file);
    expect(clock.offset()).to.equal(0);
    writeFileSync(file, '7');
    await until(() => clock?.offset() === 7_000, 2, 'the file is read');
  });

  it('D89: follows its file, and keeps the last value while that is broken or missing', async () => {
    const clock = start('1');
    writeFileSync(`${file}.new`, '100');
    renameSync(`${file}.new`, file);
    await until(() => clock.offset() === 100_000, 2, 'the new value');
    rmSync(file);
    await passReading();
    expect(clock.offset()).to.equal(100_000);
    writeFileSync(file, 'soon');
    await passReading();
    expect(clock.offset()).to.equal(100_000);
    expect(isAhead(clock, 100_000)).to.equal(true);
  });

  it('warns of a file that holds no number of seconds, once a minute, and not of one that is missing or being written', async () => {
    const rows = [
      [null, 0],
      ['', 0],
      ['60', 0],
      ['soon', 1],
      ['1e3', 1],
      ['9'.repeat(30), 1],
    ] as const;
    for (const [text, count] of rows) {
      if (text !== null) writeFileSync(file, text);
      let warnings = 0;
      const told = makeClock(Date, file, () => warnings++);
      await passReading();
      told.close();
      expect(warnings, String(text)).to.equal(count);
    }
  });

  it('reads no more after it was closed', async () => {
    const closed = start('1');
    closed.close();
    writeFileSync(file, '2');
    await passReading();
    expect(closed.offset()).to.equal(1_000);
  });
});
