/** Header of an answer that the egress proxy gives itself; it strips the header from answers of others. */
export const proxyVerdictHeader = 'x-egress-verdict';

/** Ends of a connection asked of the egress proxy: a closed set for the metric's label and the header above. */
export const egressVerdicts = [
  'open',
  'refused_request',
  'refused_name',
  'refused_address',
  'refused_port',
  'failed_dns',
  'failed_connect',
  'failed_answer',
  'limited',
] as const;
export type EgressVerdict = (typeof egressVerdicts)[number];
export type EgressRefusal = Exclude<EgressVerdict, 'open'>;

/** Beginning of the answer of an egress proxy whose resolvers answer for no name; nothing of a source can stand there. */
export const unservedAnswer = 'HTTP/1.1 503 failed_dns\r\n';
