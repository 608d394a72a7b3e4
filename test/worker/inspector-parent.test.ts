import { expect } from 'chai';
import { type Frame, makeFrameReader } from '../../src/worker/inspector-parent.ts';

describe('Frames of the inspector parent', () => {
  const whole = Buffer.from('ready\n1 out 3\na\nb2 end 0\n1 out 2\n\u00e41 end -9\n');
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
      const spoken = told.map((frame) => `${frame.id} ${frame.is === 'out' ? frame.bytes.toString() : frame.code}`);
      expect({ ready, spoken }).to.deep.equal({ ready: 1, spoken: ['1 a\nb', '2 0', '1 \u00e4', '1 -9'] });
    });
  }
});
