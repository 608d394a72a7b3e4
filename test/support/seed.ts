const usual = 20_261_123;

/**
 * Seed of what a test draws at random, or `SEED`. Each short run draws the same, so that it judges its tree and nothing else;
 * each long one (`make soak`) draws anew.
 */
export const seed = Number(process.env.SEED ?? (process.env.ROUNDS === undefined ? usual : Date.now() % 2 ** 31));
