import type { ServerResponse } from 'node:http';

const lookMs = 50;

/**
 * Calls `leave` when the caller of an unfinished answer has left; returns a function that ends this. One that has left looks like one that
 * closed only its side of the connection behind its request, until something is sent to it: an interim answer or, in a stream of events,
 * a comment. The system of one that has left then resets the connection. HTTP/1.0 has no interim answer, and proxies that speak it leave.
 */
export function onLeave(res: ServerResponse, leave: () => void): () => void {
  const { socket, httpVersion } = res.req;
  let timer: NodeJS.Timeout | undefined;
  // Node reads nothing behind the end of a connection, and hears of its reset when it writes, be it nothing.
  const look = () => {
    if (socket.writable && socket.writableLength === 0) socket.write('');
  };
  const ask = () => {
    if (res.writableEnded) return;
    if (res.headersSent) res.write(':\n\n');
    else if (httpVersion === '1.1') res.writeContinue();
    else return void socket.destroy();
    look();
    timer = setInterval(look, lookMs).unref();
  };
  const forget = () => {
    clearInterval(timer);
    res.off('close', leave).off('close', forget);
    socket.off('end', ask);
  };
  res.once('close', leave).once('close', forget);
  if (socket.readableEnded) ask();
  else socket.once('end', ask);
  return forget;
}
