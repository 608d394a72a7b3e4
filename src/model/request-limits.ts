/** Limits of requests for parts that judge no request: they stand here alone, so that egress and inspector load no schemas. */

/** Longest part of a source that a caller may ask for. */
export const maxDurationSeconds = 86_400;

export const maxBatchItems = 1_000;
