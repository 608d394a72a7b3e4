import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const heights = [360, 480, 720, 1080] as const;
export const clipSeconds = 4;
export const longSeconds = 60;
export const hourSeconds = 3700;
export const manySegments = 10_000;

const sizes: Readonly<Record<number, string>> = { 360: '640x360', 480: '854x480', 720: '1280x720', 1080: '1920x1080' };
const noise =
  'sine=f=440:r=44100,aformat=channel_layouts=stereo[a];anoisesrc=r=44100:a=0.3,aformat=channel_layouts=stereo[b];[a][b]amix';
const front = ['-movflags', '+faststart'];
const aac = ['-c:a', 'aac', '-b:a', '128k'];

/** Makes every film that the tests need, once for all runs, and answers their folder. */
export function makeFilms(): string {
  const mark = createHash('sha256')
    .update(readFileSync(fileURLToPath(import.meta.url)))
    .digest('hex')
    .slice(0, 12);
  // Not in the temporary folder: that is another one in each run, and these are for all of them.
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'trawl');
  const folder = join(cache, `films-${mark}`);
  if (existsSync(folder)) return folder;
  const made = `${folder}.${process.pid}`;
  mkdirSync(made, { recursive: true });
  makeClips(made);
  makeHeights(made);
  makeLong(made);
  makePlaylists(made);
  makeDamaged(made);
  try {
    renameSync(made, folder);
  } catch {
    // Another run was faster: its films are the same.
    rmSync(made, { recursive: true });
  }
  return folder;
}

function makeClips(folder: string): void {
  const clip = [...picture('640x360', clipSeconds, 25), ...sound(clipSeconds), ...x264(250, 25), ...aac, '-shortest'];
  ffmpeg(folder, ...clip, ...front, 'clip.mp4');
  ffmpeg(folder, ...clip, 'tail.mp4');
  ffmpeg(folder, '-i', 'clip.mp4', '-c', 'copy', 'clip.mov');
  ffmpeg(folder, '-i', 'clip.mp4', '-c:v', 'copy', '-an', ...front, 'silent.mp4');
  ffmpeg(
    folder,
    ...picture('640x360', clipSeconds, 25),
    ...sound(clipSeconds),
    ...vp9(250, 25),
    '-c:a',
    'libopus',
    '-b:a',
    '96k',
    'clip.webm',
  );
  ffmpeg(folder, '-i', 'clip.mp4', '-c:v', 'copy', '-c:a', 'libvorbis', 'odd.mkv');
  ffmpeg(folder, ...sound(clipSeconds), '-c:a', 'libmp3lame', '-b:a', '192k', 'audio.mp3');
  ffmpeg(folder, ...sound(clipSeconds), ...aac, ...front, 'audio.m4a');
  const cover = [
    '-f',
    'lavfi',
    '-t',
    '1',
    '-i',
    'testsrc2=s=64x64:r=1',
    '-map',
    '0:a',
    '-map',
    '1:v',
    '-c:a',
    'copy',
    '-c:v',
    'mjpeg',
  ];
  ffmpeg(
    folder,
    '-i',
    'audio.mp3',
    ...cover,
    '-frames:v',
    '1',
    '-disposition:v',
    'attached_pic',
    '-id3v2_version',
    '3',
    'cover.mp3',
  );
}

function makeHeights(folder: string): void {
  for (const height of heights) {
    ffmpeg(folder, ...picture(sizes[height] ?? '', clipSeconds, 10), ...x264(height, 10), ...front, `v${height}.mp4`);
    ffmpeg(folder, ...picture(sizes[height] ?? '', clipSeconds, 10), ...vp9(height, 10), `v${height}.webm`);
  }
  for (const size of ['360x640', '720x1280']) {
    ffmpeg(folder, ...picture(size, clipSeconds, 10), ...x264(400, 10), ...front, `p${Number.parseInt(size, 10)}.mp4`);
  }
  ffmpeg(folder, ...sound(clipSeconds), ...aac, ...front, 'a.m4a');
  ffmpeg(folder, ...sound(clipSeconds), '-c:a', 'libopus', '-b:a', '96k', 'a.webm');
}

function makeLong(folder: string): void {
  const noisy = picture('640x360', longSeconds, 25, ',noise=alls=25:allf=t');
  ffmpeg(folder, ...noisy, ...sound(longSeconds), ...x264(1200, 25), ...aac, '-shortest', ...front, 'long.mp4');
  for (const height of [720, 1080]) {
    ffmpeg(
      folder,
      '-f',
      'lavfi',
      '-t',
      String(hourSeconds),
      '-i',
      `testsrc2=s=${sizes[height]}:r=1/10`,
      ...x264(20, 5),
      ...front,
      `hour${height}.mp4`,
    );
  }
}

function makePlaylists(folder: string): void {
  for (const name of ['hls', 'locked', 'dash', 'many', 'fast']) mkdirSync(join(folder, name));
  const cut = ['-c', 'copy', '-f', 'hls', '-hls_playlist_type', 'vod', '-hls_time'];
  ffmpeg(folder, '-i', 'clip.mp4', ...cut, '1', '-hls_segment_filename', 'hls/%d.ts', 'hls/list.m3u8');
  ffmpeg(folder, '-i', 'long.mp4', ...cut, '2', '-hls_segment_filename', 'fast/%d.ts', 'fast/list.m3u8');
  writeFileSync(join(folder, 'locked/key'), createHash('sha256').update('key').digest().subarray(0, 16));
  writeFileSync(join(folder, 'locked/keys'), `key\n${join(folder, 'locked/key')}\n`);
  ffmpeg(
    folder,
    '-i',
    'clip.mp4',
    ...cut,
    '1',
    '-hls_key_info_file',
    'locked/keys',
    '-hls_segment_filename',
    'locked/%d.ts',
    'locked/list.m3u8',
  );
  const sets = [
    '-use_template',
    '1',
    '-use_timeline',
    '1',
    '-seg_duration',
    '1',
    '-adaptation_sets',
    'id=0,streams=v id=1,streams=a',
  ];
  ffmpeg(folder, '-i', 'clip.mp4', '-c', 'copy', '-f', 'dash', ...sets, 'dash/list.mpd');
  const tiny = ['-f', 'lavfi', '-t', String(manySegments / 5), '-i', 'testsrc2=s=64x36:r=5', ...x264(8, 1)];
  ffmpeg(
    folder,
    ...tiny,
    '-f',
    'hls',
    '-hls_playlist_type',
    'vod',
    '-hls_time',
    '0.2',
    '-hls_flags',
    'single_file',
    'many/list.m3u8',
  );
}

function makeDamaged(folder: string): void {
  const read = (name: string) => readFileSync(join(folder, name));
  const write = (name: string, bytes: Buffer | string) => writeFileSync(join(folder, name), bytes);
  write('empty.mp4', '');
  write('truncated.mp4', read('tail.mp4').subarray(0, Math.floor(read('tail.mp4').length * 0.6)));
  write('half.mp4', read('clip.mp4').subarray(0, Math.floor(read('clip.mp4').length / 2)));
  write('half.webm', read('clip.webm').subarray(0, Math.floor(read('clip.webm').length / 2)));
  write('page.mp4', '<!doctype html><title>not a film</title><p>not a film</p>'.repeat(40));
  write('noise.mp4', createHash('shake256', { outputLength: 200_000 }).update('noise').digest());
  // 1.8 GB of one letter, packed.
  execFileSync('sh', ['-c', 'head -c 1800M /dev/zero | tr "\\0" a | gzip -1 >bomb.gz'], { cwd: folder });
  write('sparse.bin', '');
  truncateSync(join(folder, 'sparse.bin'), 2 ** 20);
}

function picture(size: string, seconds: number, fps: number, also = ''): string[] {
  return ['-f', 'lavfi', '-t', String(seconds), '-i', `testsrc2=s=${size}:r=${fps}${also}`];
}

function sound(seconds: number): string[] {
  return ['-f', 'lavfi', '-t', String(seconds), '-i', noise];
}

function x264(kilobits: number, group: number): string[] {
  const rate = ['-b:v', `${kilobits}k`, '-maxrate', `${kilobits}k`, '-bufsize', `${kilobits}k`];
  return ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', String(group), ...rate];
}

function vp9(kilobits: number, group: number): string[] {
  const fast = ['-deadline', 'realtime', '-cpu-used', '8', '-row-mt', '1'];
  return ['-c:v', 'libvpx-vp9', ...fast, '-b:v', `${kilobits}k`, '-g', String(group)];
}

function ffmpeg(folder: string, ...words: string[]): void {
  execFileSync('ffmpeg', ['-nostdin', '-v', 'error', '-y', ...words], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}
