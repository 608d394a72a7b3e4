import { IncomingMessage, ServerResponse } from 'node:http';
import type { Express } from 'express';

/**
 * Classes for a server of this app, whose objects are from the start what Express makes of each request and each answer.
 * It gives them other prototypes otherwise, and objects that change so are slow for everybody who touches them.
 */
export function messagesOf(app: Express) {
  class Request extends IncomingMessage {}
  class Response extends ServerResponse {}
  app.request = become(Request.prototype, app.request);
  app.response = become(Response.prototype, app.response);
  return { IncomingMessage: Request, ServerResponse: Response };
}

/** Gives a prototype all that another one has and inherits. */
function become<T extends object>(prototype: object, other: T): T {
  Object.defineProperties(prototype, Object.getOwnPropertyDescriptors(other));
  return Object.setPrototypeOf(prototype, Object.getPrototypeOf(other));
}
