const text = { type: 'string' } as const;
const yes = { type: 'boolean' } as const;
/** Options of the command line, as `parseArgs` reads them. */
export const getOptions = {
  audio: yes,
  quality: text,
  format: text,
  'max-duration': text,
  start: text,
  end: text,
  output: text,
  parallel: text,
  playlist: text,
  'idempotency-key': text,
  json: yes,
  help: { ...yes, short: 'h' },
} as const;

export const defaultParallel = 4;
export const maxParallel = 50;
export const maxPlaylist = 1000;
/** The header has at most 255 characters, and each request adds its own to the key. */
export const maxKeyLength = 200;

export const getUsage =
  'trawl get URL… [--audio] [--quality Q] [--format F] [--max-duration S] [--start S] [--end S] [--output PATH] [--parallel N] [--playlist N] [--idempotency-key K] [--json]';

export const getHelp = `Usage: ${getUsage}

Asks the service for each URL, waits, fetches the file into the current folder, compares its SHA-256 and prints its path.
A URL of - reads a list from standard input, one URL a line; blank lines and lines that begin with # are skipped. No file
is overwritten: a taken name gets " (1)", and a partial file ends in .part. The service and the key are those of
TRAWL_API_URL and TRAWL_API_KEY, else those that trawl login keeps; other settings are ignored.

On a terminal one bar shows the way of all files into the folder, from the request to the name. Behind it stand the stage,
its speed and the time until its end: the service inspects, fetches, converts, proves and uploads the file, then it is
saved here. Elsewhere each new stage is a line. Nothing is asked for while no file can be written in the folder.

A first contact is given up after 10 s. Once a job is accepted, a service that is away is waited for, up to 5 minutes; a
broken download goes on where it was. Each URL is asked for with an Idempotency-Key, so a lost answer never makes a second
job. When the command gives up although the service may have accepted something, it names the --idempotency-key with which
the same command, repeated within 24 h, goes on with those jobs and is not charged again; a failed or cancelled job stays
so. Ctrl-C, or a path that standard output does not take, cancels the open jobs; the second Ctrl-C ends at once.

  --audio           Only the sound.
  --quality Q       Upper limit: best, 1080p, 720p, 480p or 360p; with --audio best, 320kbps, 256kbps or 128kbps.
  --format F        Preferred format: mp4, webm or mkv; with --audio mp3, m4a or wav.
  --max-duration S  Seconds after which longer content is cut. A live stream needs it.
  --start S         Second of the source at which the file begins.
  --end S           Second of the source at which the file ends.
  --output PATH     A folder, which exists or ends in a slash, or the name of the file when there is one URL.
  --parallel N      URLs that are asked for at once, 1 to ${maxParallel}; ${defaultParallel} unless given.
  --playlist N      Each URL names a playlist, of which at most N entries are fetched, 1 to ${maxPlaylist}.
  --idempotency-key K
                    Asks for the jobs of an earlier command with this key, where it has made them; at most ${maxKeyLength} visible
                    ASCII characters.
  --json            One line of JSON per file: {query, job_id, status, path, bytes, sha256, error, error_code}.
  --help            Show this text.

Exit code 0: every file is there. 1: a job or a download failed; the sentence stands on standard error. 2: wrong usage, or
no service is known. 3: there is no way to the service, or it refuses the key. 130: interrupted, or a path not taken.
`;

/** Returns the sentence of a refused request with the words of the command line in place of the parameter's name. */
export function inOptions(sentence: string): string {
  return sentence.replace(
    /^Bad Request: (?:(?:video|audio)_)?(quality|format|query|max_duration|start|end)(?= )/,
    (_, name) => (name === 'query' ? 'the URL' : `--${name.replace('_', '-')}`),
  );
}
