const usual = 20_261_123;

/**
 * Seed of fast-check and of `makeRandom` in all tests: `SEED` if set. Each short run draws the same, so it judges its tree alone;
 * each long run (`make soak`) draws something new. Ids and secrets of test records are random in both.
 */
export const seed = Number(process.env.SEED ?? (process.env.ROUNDS === undefined ? usual : Date.now() % 2 ** 31));
