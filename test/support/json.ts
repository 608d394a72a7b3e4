/** JSON of an answer: each expectation on it is its type. */
// biome-ignore lint/suspicious/noExplicitAny: the one place where JSON from outside is read without a schema
export type Json = any;
