import { fewAtATime } from '../api/account-turns.ts';
import { requireCursor, writeCursor } from '../api/free-call.ts';
import type { ApiReply } from '../api/reply.ts';
import { readWhole } from '../model/operator-input.ts';
import { writeTime } from '../model/timestamp.ts';
import type { ReadArchivedPart } from '../store/log/archived-parts.ts';
import { type LineCursor, listKeyNames, type NamedLine, pageLines } from '../store/log/page-lines.ts';
import type { RecordStore } from '../store/script.ts';
import { type DashboardCall, type DashboardRoute, readRoute } from './dashboard-app.ts';
import { requireRead } from './given-values.ts';

const limits = { default: 50, max: 200 };
/** Pages of a file; each looks through 5,000 lines at most. */
const maxRounds = 20;
const linesOfRound = 1_000;
const write = fewAtATime(1, 'A file of this account is being written: wait for its end');
/** Cell of the last row of a file that has not all lines. */
const leftOut = '"Older lines are left out: choose a key, a status or a day"';
const dayMs = 24 * 3_600_000;
/** Entries of a day's lines begin before this much of the next one is over: lines that waited longer for Redis get an entry of their own time. */
const maxLateMs = 5 * 60_000;
const columns = ['at', 'endpoint', 'status', 'duration_ms', 'ip', 'credits', 'key'] as const;

/** The request log of an account: a page of it, or a file for a spreadsheet. */
export function requestLogRoutes(store: RecordStore, open: ReadArchivedPart): DashboardRoute[] {
  return [
    readRoute('/api/requests', (call) => showPage(store, open, call)),
    readRoute('/api/requests.csv', (call) => write(call.accountId, () => writeCsv(store, open, call))),
  ];
}

async function showPage(store: RecordStore, open: ReadArchivedPart, call: DashboardCall): Promise<ApiReply> {
  const { cursor, limit = String(limits.default) } = call.req.query;
  const size = requireRead(readWhole(limit, { min: 1, max: limits.max, subject: 'limit' }));
  const after = cursor === undefined ? null : readCursor(String(cursor));
  const { lines, next } = await findLines(store, open, call, size, after);
  const next_cursor = next && writeCursor(next.entry, next.stream);
  return { status: 200, body: { requests: lines.map(lineJson), next_cursor } };
}

async function writeCsv(store: RecordStore, open: ReadArchivedPart, call: DashboardCall): Promise<null> {
  const { res } = call;
  res.set({
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': 'attachment; filename="requests.csv"',
  });
  res.write(`${columns.join(',')}\r\n`);
  let after: LineCursor | null = null;
  for (let round = 0; round < maxRounds && !res.destroyed; round++) {
    const { lines, next }: Awaited<ReturnType<typeof pageLines>> = await findLines(
      store,
      open,
      call,
      linesOfRound,
      after,
    );
    for (const line of lines) {
      const shown = lineJson(line);
      res.write(`${columns.map((name) => csvCell(shown[name])).join(',')}\r\n`);
    }
    after = next;
    if (after === null) break;
  }
  if (after !== null) res.write(`${leftOut}${','.repeat(columns.length - 1)}\r\n`);
  res.end();
  return null;
}

async function findLines(
  store: RecordStore,
  open: ReadArchivedPart,
  { req, accountId }: DashboardCall,
  limit: number,
  after: LineCursor | null,
) {
  const { key, status, day, text } = req.query;
  const names = await listKeyNames(store, accountId);
  const wanted = key === undefined ? names : names.filter(({ alias }) => alias === key);
  const words = text === undefined ? '' : String(text).toLowerCase();
  const hasFilter = status !== undefined || day !== undefined || words !== '';
  const isWanted = (line: NamedLine) =>
    (status === undefined || matchesStatus(line.status, String(status))) &&
    (day === undefined || writeTime(line.at).startsWith(String(day))) &&
    (words === '' || `${line.endpoint} ${line.ip} ${line.key}`.toLowerCase().includes(words));
  const range = store.clock.offset() === 0 ? entriesOfDay(String(day)) : null;
  const wantedLines = {
    limit,
    after: after ?? range?.behind ?? null,
    isWanted: hasFilter ? isWanted : undefined,
    open,
  };
  const { lines, next } = await pageLines(store, wanted, wantedLines);
  const isOver = next !== null && range !== null && Number.parseInt(next.entry, 10) < range.fromMs;
  return { lines, next: isOver ? null : next };
}

/**
 * Returns where the lines of a whole day can be, `null` for another text: an entry has the time of Redis at which it was written, or that of a
 * line that was late, and is no older than its line. Under a rehearsal the two have nothing to do with each other.
 */
function entriesOfDay(day: string): { readonly behind: LineCursor; readonly fromMs: number } | null {
  const fromMs = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(day) : Number.NaN;
  // No entry is older than 1970, and Redis refuses such an id.
  if (!(fromMs >= 0)) return null;
  return { behind: { entry: `${fromMs + dayMs + maxLateMs}-0`, stream: '' }, fromMs };
}

/** `404` is one status, `4xx` all that begin with 4. */
function matchesStatus(status: number, wanted: string): boolean {
  return /^[1-5]xx$/.test(wanted) ? String(status).startsWith(wanted.charAt(0)) : String(status) === wanted;
}

function lineJson({ at, endpoint, status, duration_ms, ip, credits, key }: NamedLine) {
  return { at: writeTime(at), endpoint, status, duration_ms, ip, credits, key };
}

/** A cell that begins like a formula would run in a spreadsheet. */
function csvCell(value: string | number): string {
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function readCursor(cursor: string): LineCursor {
  const [entry, stream] = requireCursor(cursor, /^(\d{1,15}-\d{1,15}) (\S{1,200})$/);
  return { entry, stream };
}
