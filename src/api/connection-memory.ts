// Gain: without it an admission takes 1.14 times its CPU, a poll 1.12 times (`make bench BENCH=api` has both rows).

import type { Socket } from 'node:net';

/**
 * Returns `read`, which reads a text again only when it differs from the last one of its connection: the requests of one connection
 * mostly have the same key, and come from the same address. `read` must depend on nothing but the connection and the text.
 */
export function rememberLast<T, V>(read: (socket: Socket, text: T) => V): (socket: Socket, text: T) => V {
  const lasts = new WeakMap<Socket, { readonly text: T; readonly value: V }>();
  return (socket, text) => {
    const last = lasts.get(socket);
    if (last !== undefined && last.text === text) return last.value;
    const value = read(socket, text);
    lasts.set(socket, { text, value });
    return value;
  };
}
