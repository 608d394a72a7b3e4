import { inflateRawSync } from 'node:zlib';
import { type Job, jobStatuses } from '../../model/job.ts';
import { metadataFields } from '../../model/metadata.ts';
import { keys } from '../keys.ts';
import { pairs, type RecordStore } from '../script.ts';
import { keepDeflater } from './text-deflater.ts';

// An ended job is one string: a line of words that scripts read, a line with its attempts, and all other texts, deflated.

/** Texts of a job that no script reads. */
export type JobTexts = Pick<
  Job,
  | 'key'
  | 'endpoint'
  | 'path'
  | 'args'
  | 'webhook_url'
  | 'webhook_authorization'
  | 'error'
  | 'metadata'
  | 'delivered'
  | 'trace'
>;

/** An ended job as the record keeps it: `words` are the fields that scripts read, '' where the job has none. */
export interface StoredEnd {
  readonly words: Readonly<Record<EndWord, string>>;
  /** JSON of its marks, with commas between. */
  readonly attempts: string;
  /** `null` where they are damaged. */
  readonly texts: JobTexts | null;
}

/** The words of the first line in their order. */
const endWords = [
  'account',
  'status',
  'revision',
  'created_at',
  'started_at',
  'ended_at',
  'progress',
  'attempt',
  'failures',
  'interruptions',
  'storing_since',
  'removed_at',
  'error_code',
  'receiver',
] as const;
type EndWord = (typeof endWords)[number];
/** Times that are kept as milliseconds since the creation of the job: they are shorter. */
const relativeWords: readonly EndWord[] = ['started_at', 'ended_at', 'storing_since', 'removed_at'];

/**
 * Lua that writes the stored form: `words`, `attempts` and `texts` are the Lua of each part. Of a status the first letter counts.
 * One statement, because a job that ends pays for each function and table of its script.
 */
export function writeEnd(words: (name: EndWord) => string, attempts: string, texts: string): string {
  const kept = endWords.map((name) => {
    const word = words(name);
    if (name === 'status') return `string.sub(${word}, 1, 1)`;
    if (word === "''") return "'-'";
    const shown = relativeWords.includes(name) ? `string.format('%d', ${word} - ${words('created_at')})` : word;
    return `${word} ~= '' and ${shown} or '-'`;
  });
  return `redis.call('SET', endedJob, table.concat({ ${kept.join(', ')} }, ' ') .. '\\n' .. ${attempts} .. '\\n' .. ${texts})`;
}

/**
 * Lua that reads the stored form.
 *
 * read_end() → the words under their names, the attempts, the texts; nil when the job has not ended or is not there.
 */
export const readEnd = /* lua */ `
local end_words = { ${endWords.map((word) => `'${word}'`).join(', ')} }
local is_relative = { ${relativeWords.map((word) => `${word} = true`).join(', ')} }

local function read_end()
  local kept = redis.call('GET', endedJob)
  if not kept then return nil end
  local line, attempts, at = string.match(kept, '^([^\\n]*)\\n([^\\n]*)\\n()')
  local words, n = {}, 0
  for word in string.gmatch(line, '%S+') do
    n = n + 1
    local name = end_words[n]
    if word == '-' then words[name] = ''
    elseif is_relative[name] then words[name] = string.format('%d', word + words.created_at)
    else words[name] = word end
  end
  return words, attempts, string.sub(kept, at)
end
`;

/** Dictionary of parts that most texts have in common. Changing it changes the layout of the record. */
const commonTexts = [
  '"video","/v1/video/download","audio","/v1/audio/download","metadata","/v1/media/metadata","download_type":"audio_video",',
  '"max_duration":"video_quality":"best","video_format":"mp4""1080p""720p"audio_quality":"audio_format":"mp3""320kbps"',
  'webhook_url":"webhook_authorization":"is_async":true,soft_fail":https://www.youtube.com/watch?v=https://youtu.be/',
  'https://www.youtube.com/channel/UChttps://i.ytimg.com/vi//maxresdefault.jpg","content_type":"video/mp4"audio/mpeg"',
  ' your about their there would which could because through people between before after other every never always really ',
  'first second being going world little great right still today years again things something watching episode chapters ',
  'season show live play game made make when where what who how why now here than then them they these those only over ',
  'just more most much many some such very well back down been were have from into will like take time want know look best ',
  "all are but can has her his one our out two use way new day see also last week don't it's I'm by is in to of and the for on ",
  'with you that this Thanks for watching! Please like, comment and subscribe to my channel for more videos. ',
  'Follow me on Instagram: https://www.instagram.com/ Facebook: https://www.facebook.com/ Twitter: https://twitter.com/ ',
  'TikTok: https://www.tiktok.com/@ Patreon: https://www.patreon.com/ Website: https://www. Discord: https://discord.gg/ ',
  'Music by Official video directed produced Camera Links below:\\n\\n#00:00 Intro\\n0:00\\n01:\\n',
  Object.keys(metadataFields)
    .map((name) => `"${name}":null,`)
    .join(''),
  '"is_live":false,"was_live":false,"live_status":"not_live","extractor":"youtube","upload_date":202,"webpage_url":"',
  '{"key":"/1/media.mp4","bytes":,"sha256":"","content_type":"video/mp4"},{"id":"","ext":"mp4","title":"","width":1920,',
  '"height":1080,"channel":"","channel_url":"https://www.',
  '","video","/v1/video/download",{"query":"https://www.youtube.com/watch?v=","is_async":true},null,null,null,',
].join('');

// A window of 8 KB and its tables: larger ones cost more time than these few KB of text give back.
const deflating = { level: 9, windowBits: 13, memLevel: 6 } as const;
const dictionary = Buffer.from(commonTexts);
const deflate = keepDeflater({ ...deflating, dictionary });

export function packTexts(texts: JobTexts): Buffer {
  const { key, endpoint, path, args, webhook_url, webhook_authorization, error, metadata, delivered, trace } = texts;
  const list = [key, endpoint, path, args, webhook_url, webhook_authorization, error, delivered, metadata];
  // Last and optional: a job that is not traced pays no byte for it.
  if (trace !== null) list.push(trace.parent);
  return deflate(JSON.stringify(list));
}

function unpackTexts(packed: Uint8Array): JobTexts | null {
  let list: unknown;
  try {
    list = JSON.parse(inflateRawSync(packed, { windowBits: 15, dictionary }).toString());
  } catch {
    return null;
  }
  if (!Array.isArray(list)) return null;
  const [key, endpoint, path, args, webhook_url, webhook_authorization, error, delivered, metadata, parent] = list;
  const trace = parent === undefined ? null : { parent };
  return { key, endpoint, path, args, webhook_url, webhook_authorization, error, metadata, delivered, trace };
}

/** Reads ended jobs; `null` for one that has not ended or is not there. */
export async function readEnds({ connection }: RecordStore, ids: readonly string[]): Promise<(StoredEnd | null)[]> {
  const stored = await connection.readBytes(ids.map((id) => keys.endedJob(id)));
  return stored.map((bytes) => bytes && parseEnd(bytes));
}

export function parseEnd(bytes: Buffer): StoredEnd {
  const first = bytes.indexOf('\n');
  const second = bytes.indexOf('\n', first + 1);
  const line = bytes.toString('utf8', 0, first).split(' ');
  const words = pairs(endWords.flatMap((name, n) => [name, line[n] === '-' ? '' : (line[n] ?? '')])) as Record<
    EndWord,
    string
  >;
  words.status = jobStatuses.find((status) => words.status !== '' && status.startsWith(words.status)) ?? '';
  for (const name of relativeWords)
    if (words[name]) words[name] = String(Number(words.created_at) + Number(words[name]));
  return {
    words,
    attempts: bytes.toString('utf8', first + 1, second),
    texts: unpackTexts(bytes.subarray(second + 1)),
  };
}
