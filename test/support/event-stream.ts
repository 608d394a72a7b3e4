import type { TestApi } from './api.ts';
import type { Json } from './json.ts';

/** One server-sent event; `data` as JSON. */
export interface StreamEvent {
  readonly event: string;
  readonly id: string;
  readonly data: Json;
}

/** A stream of events as a caller reads it. */
export interface EventStream {
  readonly response: Response;
  /** The next event, `null` after the last. */
  next(): Promise<StreamEvent | null>;
  /** All events that are left, and what came that was no event. */
  rest(): Promise<{ events: StreamEvent[]; notes: string[] }>;
  /** Leaves in its middle. */
  cancel(): Promise<void>;
}

export async function openEventStream(
  api: Pick<TestApi, 'url'>,
  path: string,
  key: string | null,
  headers: Record<string, string> = {},
): Promise<EventStream> {
  const response = await fetch(api.url + path, { headers: { ...(key ? { 'x-api-key': key } : {}), ...headers } });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const notes: string[] = [];
  let text = '';
  const next = async (): Promise<StreamEvent | null> => {
    for (;;) {
      const end = text.indexOf('\n\n');
      if (end < 0) {
        const { done, value } = await reader.read();
        if (done) return null;
        text += value;
        continue;
      }
      const block = text.slice(0, end);
      text = text.slice(end + 2);
      const seen = readEvent(block);
      if (seen) return seen;
      notes.push(block);
    }
  };
  const rest = async () => {
    const events = [];
    for (let seen = await next(); seen; seen = await next()) events.push(seen);
    return { events, notes };
  };
  return { response, next, rest, cancel: () => reader.cancel() };
}

function readEvent(block: string): StreamEvent | null {
  const fields = Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s, 2)));
  const { event, id, data } = fields as Record<string, string | undefined>;
  return event && id && data ? { event, id, data: JSON.parse(data) } : null;
}
