/** Letters and marks of the scripts that are written from right to left. */
const rtl = String.raw`[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]`;
/** A sign of a currency or % belongs to a number of digits as in Europe, and a hyphen joins two of them. */
const number = String.raw`(?:[\p{Sc}%#]*\d+(?:[-+.,:/]\d+)*[\p{Sc}%#]*|\p{Nd}+(?:[.,:/٫٬]\p{Nd}+)*)`;
const numbers = new RegExp(`(${number})`, 'u');
/** Words of these scripts with blanks, punctuation and numbers between them, but no letter of another script, and numbers after the last one. */
const phrases = new RegExp(String.raw`(${rtl}\p{M}*(?:[^\p{L}]*${rtl}\p{M}*)*(?: +${number}(?![\p{L}\p{Nd}]))*)`, 'u');
const openBracket = /[([][^)\]]*$/;
const mirrored = { '(': ')', ')': '(', '[': ']', ']': '[', '{': '}', '}': '{', '«': '»', '»': '«' } as const;

/** Part of a line; its letters stand in the order in which they are read, since fonts turn them. */
interface LinePart {
  readonly text: string;
  /** A number of a phrase, which fonts turn, too, when its digits are Arabic. */
  readonly isNumber: boolean;
}

/**
 * Returns the parts of a line that is read from left to right in the order in which they are drawn: a phrase in Hebrew or Arabic begins at
 * its right end, and each number in it at its left one.
 */
export function visualOrder(line: string): LinePart[] {
  const parts = line.split(phrases);
  for (let n = 1; n < parts.length; n += 2) {
    const next = parts[n + 1]!;
    // The bracket that closes one of the phrase belongs to it.
    if (!openBracket.test(parts[n]!) || !/^[)\]]/.test(next)) continue;
    parts[n] += next.charAt(0);
    parts[n + 1] = next.slice(1);
  }
  const drawn = parts.flatMap((text, n) => (n % 2 === 0 ? [{ text, isNumber: false }] : turn(text)));
  return drawn.filter(({ text }) => text !== '');
}

function turn(phrase: string): LinePart[] {
  const parts = phrase.split(numbers).map((text, n) => {
    const isNumber = n % 2 === 1;
    return { text: isNumber ? text : mirror(text), isNumber };
  });
  return parts.reverse();
}

function mirror(text: string): string {
  return text.replaceAll(/[()[\]{}«»]/g, (bracket) => mirrored[bracket as keyof typeof mirrored]);
}
