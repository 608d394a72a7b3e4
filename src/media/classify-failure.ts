import type { FailureCode } from '../base/errors.ts';
import { membersOf } from '../base/parse-json.ts';
import { asList, asText } from './source-page.ts';

interface YtDlpFailure {
  /** Names of the exception's class and of those that caused it, outermost first. */
  readonly classes: readonly string[];
  readonly message: string;
  readonly stage: 'inspect' | 'fetch';
  readonly http: number | null;
  readonly expected: boolean;
  /** Verdict of the egress proxy, when the proxy refused. */
  readonly verdict: string | null;
  /** True when the file comes in many pieces, of which one may be missing. */
  readonly fragmented?: boolean;
}

const maxWordsLength = 4000;
/** The driver writes some 7,500 characters. What a taken-over child writes is cut: a pattern may take the square of its length. */
const maxMessageLength = 10_000;

/** A map, because a child may name any class: an object has a `constructor` for everybody. */
const byClass: ReadonlyMap<string, FailureCode> = new Map([
  ['TooLarge', 'file_too_large'],
  ['Playlist', 'playlist_only'],
  ['UnsupportedError', 'unsupported_url'],
  ['GeoRestrictedError', 'geo_blocked'],
  ['UserNotLive', 'not_started'],
  ['ContentTooShortError', 'source_broken'],
  ['MemoryError', 'file_too_large'],
]);

/** Classes of broken connections; the message decides before them. */
const transports = new Set(
  'TransportError IncompleteRead ProxyError SSLError CertificateVerifyError TimeoutError ConnectionResetError RemoteDisconnected RetryError'.split(
    ' ',
  ),
);

/** Errors of Python itself: they quote words of the code, such as the name of a missing key, and none of the source. */
const crashes = new Set(
  'AssertionError AttributeError IndexError KeyError NameError RecursionError TypeError UnboundLocalError ValueError'.split(
    ' ',
  ),
);
const missingInPage = /not found in (the )?(web)?page/;

type Patterns = readonly (readonly [FailureCode, RegExp])[];

/** Patterns of the message about connection, memory and disk, which also a crash may have as its cause. */
const ofTransfer: Patterns = [
  ['address_not_allowed', /tunnel connection failed: 403/],
  [
    'source_incomplete',
    /fragment \d+ not found|incorrect aes key length|must be padded to 16 byte boundary|write to closed file|initialization fragment found after/,
  ],
  ['file_too_large', /larger than max-filesize|is too large|\[errno 27\]|exited with code -25\b/],
  ['file_damaged', /exited with code -24\b/],
  ['worker_failed', /\[errno (11|12|23|24|28|122)\]|can.t start new thread/],
  ['file_damaged', /did not get any data blocks|downloaded file is empty/],
  [
    'source_broken',
    /timed out|connection (was )?(reset|refused|aborted|closed|broken)|downloaded \d+ bytes, expected|bytes read|content too short|network error|eof occurred|name resolution|handshake|tunnel connection failed: 5|ffmpeg exited with code/,
  ],
];

/** Patterns of what the source says; the first match decides. Failures that a caller can act on stand before missing content. */
const ofSource: Patterns = [
  // What an extractor sought and lacked is a name, whatever word it holds (D97).
  [
    'extractor_failed',
    /^[^|]*(unable to extract |an extractor error has occurred)|(guest|anonymous|temporary) token|phantomjs not found/,
  ],
  [
    'source_error',
    /temporarily unavailable|server.side|internal (server )?error|server error|error occurred while receiving/,
  ],
  [
    'source_bot_check',
    /not a (bot|robot)|captcha|anti-bot|cloudflare|unusual (location|traffic)|tls fingerprint|browser impersonation|impersonate target/,
  ],
  [
    'source_rate_limited',
    /rate.?limit|too many requests|try again later\. (your account|the current session)|later\. the current session/,
  ],
  [
    'source_blocked',
    /\bip (address )?is (likely being )?(blocked|unable)|blocked (by|from|due)|(is|been) (blocked|rejected) by|by decision of/,
  ],
  [
    'age_restricted',
    /confirm your age|age.?(restrict|verif|gate|limit)|older than \d|inappropriate|sensitive content|\bnsf[wl]\b|adults? (only|content|verif)|under 18/,
  ],
  ['drm_protected', /\bdrm\b/],
  [
    'geo_blocked',
    /geo.?(restrict|block|location)|(country|region|location)\b(?!.*(unspecified|incorrect))|available in [\w ]+ only|only available in [a-z]|licensed to users|outside of/,
  ],
  [
    'members_only',
    /members?\b.?only|for (\w+ )?members|only available (for|to) (premium|members|subscribers)|subscri(ber|ption)|premium|supporter|\bvip\b|purchase|not free|have to pay|requires payment|first members|join this channel|tickets|rental|paid/,
  ],
  [
    'private',
    /\bprivate\b|pass(word|code)[ -]?protected|protected by a pass|protected tweet|not been made available to anyone/,
  ],
  [
    'not_started',
    /premieres?\b|not (yet )?started|will begin|will start|scheduled|not available yet|not yet available|starts? (in|at)\b|upcoming|off-?line(?! because)|will be available|only available after|not (currently )?(live|online|broadcasting|streaming)|no active streams|live event will/,
  ],
  [
    'login_required',
    /log(ged)?.?in|sign(ed)? in|registered users|authenticat|not authorized|authorization|credentials|cookies|your account|account is needed|access token|an account (that|is)|username|permission|unable to access|have access|locked|token|password/,
  ],
  [
    'video_unavailable',
    /unavailable|not available|isn.t available|no longer(?! supported)|no such|removed|deleted|do(es)?(n.t| not) exist|not found|has ended|have ended|ended (and|but)|expired|terminated|suspended|taken down|copyright|is disabled|inaccessible|couldn.t find|can.t be accessed|still be uploading|is processing|processing this/,
  ],
  [
    'unsupported_url',
    /unsupported url|is not a valid url|no suitable extractor|invalid url|blob url|(is not|not) a video|no longer supported|do(es)?(n.t| not) (have|contain) (a|any) video|no (video(?! formats)|media|source|audio)[\w/ ]* (found|could|in|on|was)|no video(?! formats)|no media|(any|a) video( or audio track)?$|(is not|not be|no longer|not) supported|unsupported|plain image|is not a file|looks truncated|without video id|live dash videos/,
  ],
  [
    'extractor_failed',
    /no video formats|no (supported )?formats|no m3u header|unable to extract|extractor error|requested format is not available|could not find/,
  ],
];

/** Message about a direct link, or the link of a page that yt-dlp has no site for, whose answer is no list of HLS. */
const noList = /\[generic\] [^|]*response data has no m3u header/;

/** Parts of a message that are not the source's own words: HTTP statuses, URLs, extractor names, advice on yt-dlp's options. */
const noise =
  /http error \d{3}(: [\w' -]+)?(\(caused by[^|]*)?|https?:\/\/\S+|^error:|\[[\w:+.-]+\] (?:[^\s:|]+: )?|use --cookies[^|]*|(;|\.) please report this issue[^|]*|you may want to use --cookies[^|]*|try --[^|]*/g;

export function readFailure(json: unknown): YtDlpFailure {
  const fields = membersOf(json);
  const causes = asList(fields.causes).map(asText);
  return {
    classes: asList(fields.class).map(asText),
    message: [asText(fields.message), ...causes].join(' | ').slice(0, maxMessageLength),
    stage: fields.stage === 'fetch' ? 'fetch' : 'inspect',
    http: typeof fields.http === 'number' ? fields.http : null,
    expected: fields.expected === true,
    verdict: typeof fields.verdict === 'string' ? fields.verdict : null,
  };
}

/**
 * Returns the code of a failure: egress verdict and class decide first, then the message, then the HTTP status. The
 * message of a crash tells only of connection, memory and disk.
 */
export function classifyFailure(failure: YtDlpFailure): FailureCode {
  if (failure.verdict?.startsWith('refused')) return 'address_not_allowed';
  if (failure.verdict !== null) return 'source_broken';
  const named = failure.classes.map((name) => byClass.get(name)).find((code) => code !== undefined);
  if (named !== undefined) return named;
  const message = failure.message.toLowerCase();
  if (noList.test(message)) return 'unsupported_url';
  const words = message.replaceAll(noise, ' ').slice(0, maxWordsLength);
  const crashed = crashes.has(failure.classes[0] ?? '') || (!failure.expected && missingInPage.test(words));
  const worded = [...ofTransfer, ...(crashed ? [] : ofSource)].find(([, pattern]) => pattern.test(words));
  if (worded !== undefined) return worded[0];
  const status = failure.http ?? (Number(/http error (\d{3})/.exec(message)?.[1] ?? 0) || null);
  const answered = status === null ? null : byStatus(status, failure);
  if (answered !== null) return answered;
  if (failure.classes.some((name) => transports.has(name))) return 'source_broken';
  return failure.stage === 'inspect' && !failure.expected ? 'extractor_failed' : 'unclassified';
}

function byStatus(status: number, { stage, fragmented }: YtDlpFailure): FailureCode | null {
  if (status === 404 || status === 410) return stage === 'fetch' && fragmented ? 'source_incomplete' : 'deleted';
  if (status === 401) return 'login_required';
  if (status === 451) return 'geo_blocked';
  if (status === 429) return 'source_rate_limited';
  if (status >= 500) return 'source_error';
  return status >= 400 ? 'source_blocked' : null;
}

const ofFfmpeg: Patterns = [
  ['file_too_large', /File too large/],
  ['worker_failed', /No space left on device|Cannot allocate memory/],
  [
    'file_damaged',
    /partial file|ended prematurely|Truncating packet|moov atom not found|error reading header|corrupt input packet|Packet corrupt|EBML header parsing failed|corresponding track id|Header missing|Could not find codec parameters|Invalid NAL unit size|non-existing PPS|Output file is empty|does not contain any stream|matches no streams|Invalid data found|corrupt decoded frame|packet with unknown timestamp|Conversion failed/,
  ],
];

/** Returns the code of ffmpeg's standard error, `unclassified` for an unknown message. */
export function classifyFfmpeg(stderr: string): FailureCode {
  return ofFfmpeg.find(([, pattern]) => pattern.test(stderr))?.[0] ?? 'unclassified';
}
