import type { ServerResponse } from 'node:http';

const lookMs = 200;
/** Looks until the caller is asked again: every 2 s. */
const looksBetween = 10;

/**
 * Calls `leave` when the caller of an unfinished answer has left; returns a function that ends this. One that has left looks like one that
 * closed only its side of the connection behind its request, until something is sent to it: an interim answer or, in a stream of events,
 * a comment. The system of one that has left then resets the connection. HTTP/1.0 has no interim answer, and proxies that speak it leave.
 */
export function onLeave(res: ServerResponse, leave: () => void): () => void {
  const { socket, httpVersion } = res.req;
  let timer: NodeJS.Timeout | undefined;
  let looks = 0;
  const ask = () => {
    if (res.headersSent) res.write(':\n\n');
    else res.writeContinue();
  };
  const look = () => {
    if (res.writableEnded || !socket.writable || socket.writableLength > 0) return;
    // A proxy in between hears of it later, and then resets nothing before the next one.
    if (looks++ % looksBetween === 0) ask();
    // Node reads nothing behind the end of a connection, and hears of its reset when it writes, be it nothing.
    socket.write('');
  };
  const begin = () => {
    if (!res.headersSent && httpVersion !== '1.1') return void socket.destroy();
    look();
    timer = setInterval(look, lookMs).unref();
  };
  const forget = () => {
    clearInterval(timer);
    res.off('close', leave).off('close', forget);
    socket.off('end', begin);
  };
  res.once('close', leave).once('close', forget);
  if (socket.readableEnded) begin();
  else socket.once('end', begin);
  return forget;
}
