/** Currencies whose amounts the payment provider does not count in hundredths; src/model/purchase.ts has the same list. */
const unusualDecimals = {
  0: 'BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF',
  3: 'BHD JOD KWD OMR TND',
};

/** Returns how many decimals the provider's smallest unit of a currency is. */
export function decimalsOf(currency) {
  const code = currency.toUpperCase();
  const [unusual] = Object.entries(unusualDecimals).find(([, codes]) => codes.split(' ').includes(code)) ?? [];
  return Number(unusual ?? 2);
}
