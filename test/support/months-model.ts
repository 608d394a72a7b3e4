/** A paid account whose top-up buys 10 credits for 9.90 below 30 % of plan and pack, at most twice a calendar month. */
export const terms = { quota: 40, credits: 20, daily: 5, pack: 10, percent: 30, cents: 990, capCents: 1980 };
const hour = 3_600_000;
const nextMonth = (at: number) => Date.UTC(new Date(at).getUTCFullYear(), new Date(at).getUTCMonth() + 1);
const monthOf = (at: number) => new Date(at).toISOString().slice(0, 7);

const nothingUsed = () => ({
  used: 0,
  packs: [] as { total: number; used: number }[],
  consumed: 0,
  month: 0,
  isWanted: false,
  lookAt: Number.POSITIVE_INFINITY,
});

function leftOf({ used, packs, consumed }: ReturnType<typeof nothingUsed>): number {
  const ofPacks = packs.reduce((sum, pack) => sum + pack.total - pack.used, 0);
  return terms.quota - used + ofPacks + terms.credits - consumed;
}

/** Books of one account, kept in the plainest way: the record must say the same. */
export function openBooks(anchor: number, keyEndsAt: number) {
  const calls: number[] = [];
  const bought: number[] = [];
  const state = nothingUsed();
  const left = () => leftOf(state);

  function draw(at: number): void {
    const pack = state.packs.find(({ total, used }) => used < total);
    if (state.used < terms.quota) state.used++;
    else if (pack) pack.used++;
    else state.consumed++;
    ask(at);
  }

  /** Asks for a purchase, or for a look at the end of the 72 hours. */
  function ask(at: number): void {
    const possibleAt = (bought.at(-1) ?? Number.NEGATIVE_INFINITY) + 72 * hour;
    if (left() * 100 >= terms.percent * (terms.quota + terms.pack)) return;
    if (at >= possibleAt) state.isWanted = true;
    else if (left() < 1) state.lookAt = Math.min(state.lookAt, possibleAt);
  }

  function roll(at: number): void {
    for (; at >= monthsAfter(anchor, state.month + 1); state.month++) state.used = 0;
  }

  return {
    /** Returns the refusal of a call, or null when it was charged. */
    call(at: number): string | null {
      if (at > keyEndsAt) return 'expired_api_key';
      roll(at);
      if (calls.filter((one) => at - one < 24 * hour).length >= terms.daily) return 'key_quota_exceeded';
      if (left() < 1) return 'payment_required';
      calls.push(at);
      draw(at);
      return null;
    },
    /** Looks at the balance when that is due, and carries out what was asked for; the rest of the day belongs to the next purchase. */
    buy(at: number): void {
      if (at >= state.lookAt) {
        roll(at);
        state.lookAt = Number.POSITIVE_INFINITY;
        if (left() < 1) ask(at);
      }
      const spent = bought.filter((one) => monthOf(one) === monthOf(at)).length * terms.cents;
      if (state.isWanted && spent + terms.cents <= terms.capCents) {
        state.packs.push({ total: terms.pack, used: 0 });
        bought.push(at);
      } else if (state.isWanted) state.lookAt = nextMonth(at);
      state.isWanted = false;
    },
    books(at: number) {
      roll(at);
      const { used, packs, consumed } = state;
      return { used, packs: packs.map((pack) => ({ ...pack })), consumed, left: left(), purchases: bought.length };
    },
  };
}

/** The same day and time so many months later, or the last day of a shorter month. */
function monthsAfter(anchor: number, months: number): number {
  const from = new Date(anchor);
  const [year, month] = [from.getUTCFullYear(), from.getUTCMonth() + months];
  const day = Math.min(from.getUTCDate(), new Date(Date.UTC(year, month + 1, 0)).getUTCDate());
  return Date.UTC(year, month, day) + (anchor % (24 * hour));
}
