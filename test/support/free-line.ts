/** What the request log holds of a call that cost nothing, besides its time. */
export const freeLine = {
  endpoint: 'GET /v1/usage',
  status: 200,
  duration_ms: 3,
  ip: '192.0.2.1',
  credits: 0,
} as const;
