import { expect } from 'chai';
import { type Frame, makeFrameReader, makeLineReader } from '../../src/worker/inspector-output.ts';

describe('Frames of the inspector parent', () => {
  const whole = Buffer.from('ready\n1 pid 7\n1 out 3\na\nb2 end 0\n1 out 2\n\u00e41 end -9\n');
  for (const size of [1, 2, 7, 1000]) {
    it(`are parsed from chunks of ${size} bytes`, () => {
      const told: Frame[] = [];
      let ready = 0;
      const read = makeFrameReader(
        () => {
          ready++;
        },
        (frame) => told.push(frame),
      );
      for (let at = 0; at < whole.length; at += size) read(whole.subarray(at, at + size));
      const spoken = told.map(
        (frame) =>
          `${frame.id} ${frame.is === 'out' ? frame.bytes.toString() : frame.is === 'pid' ? frame.pid : frame.code}`,
      );
      expect({ ready, spoken }).to.deep.equal({ ready: 1, spoken: ['1 7', '1 a\nb', '2 0', '1 \u00e4', '1 -9'] });
    });
  }
});

describe('Lines of a child of the inspector', () => {
  it('are told whole, wherever they are cut, but for one that no driver would write', () => {
    const said = Buffer.from(`{"a":1}\n\n${'x'.repeat(2 ** 24)}\n{"b":2}\n${'y'.repeat(2 ** 20)}\n{"c":`);
    for (const size of [4099, 2 ** 16]) {
      const lines: string[] = [];
      const hear = makeLineReader((line) => lines.push(line));
      for (let at = 0; at < said.length; at += size) hear(said.subarray(at, at + size));
      expect(lines.map((line) => (line.length > 9 ? line.length : line))).to.deep.equal([
        '{"a":1}',
        '',
        '{"b":2}',
        2 ** 20,
      ]);
    }
  });

  it('are told up to the thousandth, because an inspection that writes line breaks alone would occupy its inspector', () => {
    let told = 0;
    const hear = makeLineReader(() => told++);
    hear(Buffer.from('{"a":1}\n'));
    for (let n = 0; n < 3; n++) hear(Buffer.alloc(2 ** 16, '\n'));
    expect(told).to.equal(1000);
  });
});
