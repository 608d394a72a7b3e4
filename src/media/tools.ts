import { type FailureCode, failures } from '../base/errors.ts';
import type { Endpoint } from '../model/job.ts';
import type { Metadata } from '../model/metadata.ts';
import type { Args } from '../model/request-parameters.ts';

/** What a caller asked for. */
export interface MediaOrder {
  readonly endpoint: Endpoint;
  readonly args: Args;
}

/** Where one job stops whatever its source does. */
export interface MediaLimits {
  /** Of the delivered file, and of everything fetched for it. */
  readonly fileBytes: number;
  /** For reading the page, before the first byte of media. */
  readonly inspectSeconds: number;
  /** A fetch that stays below `slowBytes` a second for `slowSeconds` is ended. */
  readonly slowBytes: number;
  readonly slowSeconds: number;
}

/** What a job works with. All paths are absolute. */
export interface MediaTools {
  readonly python: string;
  readonly driver: string;
  readonly ffmpeg: string;
  readonly ffprobe: string;
  readonly node: string;
  /** The job's private folder; only its owner empties it. */
  readonly folder: string;
  /** URL of the egress proxy: nothing is reached but through it. */
  readonly proxy: string;
  readonly limits: MediaLimits;
  /** Folders of the operator's plugin packages for yt-dlp. */
  readonly plugins: readonly string[];
  /** A file of cookies for this site, which is only read. */
  readonly cookies: string | null;
  readonly run: RunChild;
}

/** Starts a child; its owner decides what limits and walls are around it. */
export type RunChild = (command: string, args: readonly string[], options: RunOptions) => RunningChildProcess;

export interface RunOptions {
  readonly folder: string;
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Told each line of its standard output. */
  readonly line?: (line: string) => void;
  /** When it fires the child and everything it started is killed. */
  readonly signal: AbortSignal;
}

export interface RunningChildProcess {
  /** Id of its process and of its group; absent when it is no process of this machine. */
  readonly id?: number;
  /** Writes one line to its standard input. */
  readonly write: (line: string) => void;
  /** Closes its standard input. */
  readonly close: () => void;
  /** Settles when it has ended, for whatever reason; never rejects. */
  readonly ended: Promise<ChildEnd>;
}

export interface ChildEnd {
  /** Null when a signal ended it or it could not be started. */
  readonly code: number | null;
  /** `output` when it was killed for writing too much. */
  readonly signal: NodeJS.Signals | 'output' | null;
  /** The end of what it wrote to standard error. */
  readonly stderr: string;
}

/** A file that was proved, and the words about it. */
export interface Produced {
  readonly file: string;
  readonly metadata: Metadata;
  readonly bytes: number;
  readonly sha256: string;
  readonly content_type: string;
  readonly ext: string;
}

/** Why there is no file. The message is safe for the caller to read. */
export class Failed extends Error {
  readonly code: FailureCode;
  /** For the log alone: what the tools themselves said. */
  readonly detail: string;

  constructor(code: FailureCode, detail = '', text: string = failures[code].sentence) {
    super(text);
    this.code = code;
    this.detail = detail;
  }
}
