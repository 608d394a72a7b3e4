import { createHash } from 'node:crypto';
import { openRegular, sizeOf } from './child-folder.ts';
import { lengthTolerance } from './file-lengths.ts';
import type { ConversionPlan } from './plan-conversion.ts';
import { type FileProbe, type Probed, probeFile } from './probe-file.ts';
import { Failed, type MediaTools, type Produced } from './tools.ts';

/** Messages of ffmpeg and ffprobe about a damaged file for which they still exit with 0. */
export const damage =
  /partial file|ended prematurely|Truncating packet|truncated|moov atom not found|Error reading header|corrupt input packet/i;
const oneSecond = 1;

interface ProofTerms {
  readonly plan: ConversionPlan;
  /** Length in seconds as the source states it; `null` when it does not. */
  readonly promised: number | null;
  readonly known: Probed | null;
}

/** Proves that a file is what was promised (D33): not empty, with the streams and the length, all packets readable. */
export async function prove(
  file: string,
  { plan, promised, known }: ProofTerms,
  tools: MediaTools,
  signal: AbortSignal,
): Promise<Pick<Produced, 'bytes' | 'sha256'> & Pick<Probed, 'probe'>> {
  const size = await sizeOf(file);
  if (size === 0) throw new Failed('file_damaged', 'empty');
  if (size > tools.limits.fileBytes) throw new Failed('file_too_large');
  const probing = known?.count === 'shown' ? known : probeFile(file, 'shown', tools, signal);
  const [{ probe, ended }, sha256] = await Promise.all([probing, hash(file, signal)]);
  const fault =
    ended.code !== 0 || damage.test(ended.stderr) ? ended.stderr || 'ffprobe failed' : findFault(probe, plan, promised);
  if (fault !== null) throw new Failed('file_damaged', fault);
  // The index also promises what an edit list leaves out.
  const isEdited = lacksPackets(probe) !== null && probe.format.startsWith('mov');
  const lack = lacksPackets(isEdited ? (await probeFile(file, 'all', tools, signal)).probe : probe);
  if (lack !== null) throw new Failed('file_damaged', lack);
  return { probe, bytes: size, sha256 };
}

function lacksPackets({ streams }: FileProbe): string | null {
  const lacking = streams.find(({ promised, counted }) => promised !== null && (counted ?? 0) < promised);
  return lacking ? `stream ${lacking.index} holds ${lacking.counted} of ${lacking.promised} packets` : null;
}

function findFault(probe: FileProbe, plan: ConversionPlan, promised: number | null): string | null {
  if (!probe.format.split(',').includes(plan.container.probed)) return `format ${probe.format}`;
  if (plan.video !== (probe.video !== null)) return plan.video ? 'no picture' : 'an unwanted picture';
  if (plan.audio !== (probe.audio !== null)) return plan.audio ? 'no sound' : 'an unwanted sound';
  const empty = probe.streams.find(({ counted }) => counted === null);
  if (empty) return `stream ${empty.index} is empty`;
  if (probe.duration === null) return 'no length';
  if (promised !== null && Math.abs(probe.duration - promised) > lengthTolerance(promised)) {
    return `lasts ${probe.duration} s, promised were ${promised} s`;
  }
  // ffmpeg wrote the file from inputs of known length: 1 s and 1 % are enough.
  if (plan.length !== null && plan.length - probe.duration > oneSecond + plan.length * 0.01) {
    return `lasts ${probe.duration} s of ${plan.length} s`;
  }
  return null;
}

async function hash(file: string, signal: AbortSignal): Promise<string> {
  const sum = createHash('sha256');
  const handle = await openRegular(file);
  for await (const piece of handle.createReadStream({ highWaterMark: 2 ** 20, signal })) sum.update(piece);
  return sum.digest('hex');
}
