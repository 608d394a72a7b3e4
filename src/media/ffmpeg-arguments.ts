import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { quoteForShell } from '../base/child-process.ts';
import type { MediaTools } from './tools.ts';
import type { ClockKind } from './transport-clock.ts';

/** Demuxers that read nothing but the file they were given: no lists, no manifests, no concatenations. */
const plainFormats =
  'mov,matroska,mp3,wav,w64,aiff,caf,ogg,flac,mpegts,mpeg,aac,ac3,eac3,flv,avi,asf,amr,dts,m4v,h264,hevc';
const localRules = ['-protocol_whitelist', 'file,pipe', '-format_whitelist', plainFormats];
/** Rules for URLs: no local file can be named, and no playlist is read, because ffmpeg connects to whatever one names (`streams.py`). */
const remoteRules = ['-protocol_whitelist', 'http,https,httpproxy,tls,tcp', '-format_whitelist', plainFormats];
/** AVI has no time of presentation, MPEG program streams lack that of many pictures: without it, pictures are shown as they are decoded. */
const timed = ['-fflags', '+genpts'];
const memory = ['-max_alloc', String(512 * 2 ** 20)];

export interface InputFile {
  readonly file: string;
  /** True for a transport stream whose streams go on under other numbers (`part-changes.ts`). */
  readonly renumbered?: boolean;
  /** True for a transport stream whose pictures or sound begin so late that ffmpeg finds them only when it looks farther. */
  readonly late?: boolean;
  readonly clock?: ClockKind;
}

/** Bytes in which streams of a late file are sought, and microseconds; ffmpeg keeps in memory what it reads meanwhile. */
const farLook = ['-probesize', String(128 * 2 ** 20), '-analyzeduration', String(3600 * 1e6)];

/** Seconds after which the clock of a transport stream begins anew: more than any gap in it. */
const maxHeldSeconds = 100_000;

/** Returns the options with which ffmpeg and ffprobe read a file as it is. */
export function inputOptions({ renumbered, late }: Pick<InputFile, 'renumbered' | 'late'>): string[] {
  return [...(renumbered ? ['-merge_pmt_versions', '1'] : []), ...(late ? farLook : [])];
}

/** Returns the arguments of an ffmpeg that makes a file of what its inputs hold, each from a second on; one below zero begins that much later. */
export function ffmpegArguments(
  inputs: readonly InputFile[],
  output: readonly string[],
  file: string,
  starts: readonly number[] = [],
): string[] {
  const from = (start: number) =>
    start === 0 ? [] : start > 0 ? ['-ss', String(start)] : ['-itsoffset', String(-start)];
  const read = inputs.flatMap((input, n) => [
    ...[...timed, ...localRules, ...inputOptions(input), ...from(starts[n] ?? 0)],
    ...['-i', `file:${input.file}`],
  ]);
  const quiet = ['-nostdin', '-hide_banner', '-v', 'error', '-progress', 'pipe:1', '-nostats'];
  // ffmpeg has one such limit for all inputs.
  const gaps = inputs.every(({ clock }) => clock === 'held') ? ['-dts_delta_threshold', String(maxHeldSeconds)] : [];
  return [...quiet, ...memory, ...gaps, '-y', ...read, ...output, `file:${file}`];
}

/** Packets for ffprobe to read: none but a few at the beginning, those that a player shows, or also those that an edit list of MP4 leaves out. */
export type PacketCount = 'none' | 'shown' | 'all';

/** Facts of a file that are asked for, as ffprobe names them. */
export const fileFacts = [
  'format=format_name,duration,start_time,bit_rate',
  'format_tags=major_brand,encryption,ASF_Protection_Type',
  'stream_tags=enc_key_id,ENC_KEY_ID,DURATION,_STATISTICS_TAGS,alpha_mode',
  'stream=index,id,codec_type,codec_name,width,height,start_time,duration,duration_ts,bit_rate,sample_rate,channels,nb_frames,nb_read_packets,avg_frame_rate,r_frame_rate,has_b_frames',
  'stream_disposition=attached_pic,default',
  'stream_side_data=rotation',
];

/** Returns the arguments of an ffprobe that reads one local file. */
export function ffprobeArguments(file: string, count: PacketCount, entries: readonly string[] = fileFacts): string[] {
  const how = ['-v', 'error', ...memory, ...(count === 'none' ? [] : ['-count_packets']), '-of', 'json'];
  const unedited = count === 'all' ? ['-ignore_editlist', '1'] : [];
  return [...how, '-show_entries', entries.join(':'), ...localRules, ...unedited, '-i', `file:${file}`];
}

export function mediaEnv(folder: string): Record<string, string> {
  return { PATH: '/usr/bin:/bin', HOME: folder, TMPDIR: folder, LANG: 'C.UTF-8' };
}

/** Writes wrappers of ffmpeg and ffprobe for yt-dlp, which put the rules before every input, into a new folder; returns it. */
export function layWrappers(folder: string, programs: Pick<MediaTools, 'ffmpeg' | 'ffprobe'>): string {
  mkdirSync(folder);
  for (const name of ['ffmpeg', 'ffprobe'] as const) {
    writeFileSync(join(folder, name), wrapperText(programs[name], name === 'ffmpeg'));
    chmodSync(join(folder, name), 0o755);
  }
  // Whatever the umask: children run as another user.
  chmodSync(folder, 0o755);
  return folder;
}

function wrapperText(program: string, writes: boolean): string {
  const [local, remote, bounds] = [localRules, remoteRules, [...memory, ...(writes ? ['-nostdin'] : [])]].map((words) =>
    words.map(quoteForShell).join(' '),
  );
  return `#!/bin/sh
set -f
n=$#
while [ "$n" -gt 0 ]; do
  word=$1; shift; n=$((n - 1))
  if [ "$word" = -i ]; then
    case "$1" in
      http://*) set -- "$@" ${remote} -i ;;
      https://*) set -- "$@" ${remote} -tls_verify 1 -ca_file /etc/ssl/certs/ca-certificates.crt -i ;;
      *) set -- "$@" ${local} -i ;;
    esac
  else
    set -- "$@" "$word"
  fi
done
exec ${quoteForShell(program)} ${bounds} "$@"
`;
}
