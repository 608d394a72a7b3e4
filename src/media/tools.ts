import { type FailureCode, failures } from '../base/errors.ts';
import type { UploadRequest } from '../model/attempt-protocol.ts';
import type { Endpoint } from '../model/job.ts';
import type { Metadata } from '../model/metadata.ts';
import type { Args } from '../model/request-parameters.ts';

export interface MediaOrder {
  readonly endpoint: Endpoint;
  readonly args: Args;
  /** Most entries of a playlist that are listed. */
  readonly maxEntries?: number;
}

export interface MediaLimits {
  /** Of the delivered file, and of everything fetched for it. */
  readonly fileBytes: number;
  /** For reading the page, before the first byte of media. */
  readonly inspectSeconds: number;
  /** A fetch that stays below `slowBytes` a second for `slowSeconds` is ended. */
  readonly slowBytes: number;
  readonly slowSeconds: number;
}

export interface MediaTools {
  readonly python: string;
  readonly driver: string;
  readonly ffmpeg: string;
  readonly ffprobe: string;
  readonly node: string;
  /** Folder with the wrappers of ffmpeg and ffprobe for yt-dlp, which children can only read. */
  readonly wrappers: string;
  /** The only folder that children can write to: child-folder.ts says how it may be touched. */
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

/** Starts a child; the implementation decides its limits and its sandbox. */
export type RunChild = (command: string, args: readonly string[], options: RunOptions) => RunningChildProcess;

export interface RunOptions {
  readonly folder: string;
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly onLine?: (line: string) => void;
  /** Kills the child and everything that it started. */
  readonly signal: AbortSignal;
}

export interface RunningChildProcess {
  /** Process and group id; absent for a child that the inspector parent forked. */
  readonly id?: number;
  readonly write: (line: string) => void;
  /** Resolves when the child and all that it started have ended; never rejects. */
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

export interface Produced extends Omit<UploadRequest, 'parts'> {
  readonly file: string;
  readonly metadata: Metadata;
}

/** The job fails with this code. The message is safe for the caller to read. */
export class Failed extends Error {
  readonly code: FailureCode;
  /** Output of the programs, for the log only. */
  readonly detail: string;

  constructor(code: FailureCode, detail = '', text: string = failures[code].sentence) {
    super(text);
    this.code = code;
    this.detail = detail;
  }
}

/** The fetch of a part of a source fails: the whole may be fetched instead. */
export class SectionFailed extends Failed {}
