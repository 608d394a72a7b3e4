import { readFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import PDFDocument from 'pdfkit';
import { type EndedPurchase, invoiceNumber } from '../model/purchase.ts';
import { invoiceRows } from './invoice.ts';
import { unpackWoff } from './unpack-woff.ts';
import { visualOrder } from './visual-order.ts';

const fileOf = (module: string) => fileURLToPath(import.meta.resolve(module));
/** Latin, Greek and Cyrillic names are written as they are; the fonts of every PDF reader know only the first. */
const fonts = {
  plain: fileOf('dejavu-fonts-ttf/ttf/DejaVuSans.ttf'),
  bold: fileOf('dejavu-fonts-ttf/ttf/DejaVuSans-Bold.ttf'),
};
/** Letters of nearly every script, Chinese, Japanese and Korean among them, drawn coarsely: 3 MB, where fine ones would be 30. */
const everyLetter = fileOf('@fontsource/unifontex/files/unifontex-latin-400-normal.woff');
/** Letters of a line, in the order in which they are drawn. */
interface DrawnLine {
  readonly glyphs: readonly unknown[];
  readonly positions: readonly unknown[];
  readonly advanceWidth: number;
}

/** Parts of a font that pdfkit keeps to itself. */
interface OpenFont {
  readonly font: { hasGlyphForCodePoint(codePoint: number): boolean };
  /** Turns letters as their script does; with `latn` none. */
  layoutRun(text: string, script?: string): DrawnLine;
  layout(text: string): DrawnLine;
}

const margin = 64;
const nameWidth = 110;
const gap = 10;
const maxValueLength = 2_000;

/** Returns the invoice of a purchase on one page of A4, with the rows of its mail; its text can be selected. */
export async function writeInvoicePdf(purchase: EndedPurchase): Promise<Buffer> {
  const title = `Invoice ${invoiceNumber(purchase.invoice ?? 0)}`;
  const CreationDate = new Date(purchase.ended_at);
  const info = { Title: title, Author: purchase.seller?.name ?? '', CreationDate, ModDate: CreationDate };
  const page = new PDFDocument({ size: 'A4', margin, lang: 'en', displayTitle: true, info });
  const written = buffer(page);
  page.font(fonts.bold).fontSize(20).text(title).moveDown(1.5);
  page.fontSize(10.5);
  const valueX = margin + nameWidth;
  const valueWidth = page.page.width - margin - valueX;
  let every: Buffer | null = null;
  for (const [name, value] of invoiceRows(purchase)) {
    const { y } = page;
    page.font(fonts.bold).text(name, margin, y, { width: nameWidth });
    const text = value.slice(0, maxValueLength);
    page.font(fonts.plain);
    if (!hasLetters(page, text)) {
      every ??= unpackWoff(readFileSync(everyLetter));
      page.font(every);
    }
    drawInOrder(fontOf(page));
    page.text(text, valueX, y, { width: valueWidth });
    page.y += gap;
  }
  page.end();
  return written;
}

function fontOf(page: PDFKit.PDFDocument): OpenFont {
  return (page as unknown as { readonly _font: OpenFont })._font;
}

/** Returns whether the present font of a page has every letter of a text. */
function hasLetters(page: PDFKit.PDFDocument, text: string): boolean {
  const { font } = fontOf(page);
  return Array.from(text.replaceAll('\n', '')).every((letter) => font.hasGlyphForCodePoint(letter.codePointAt(0)!));
}

/** Has a font draw each line in the order in which it is read: pdfkit draws word after word from left to right. */
function drawInOrder(font: OpenFont): void {
  font.layout = (line) => {
    const parts = visualOrder(line).map(({ text, isNumber }) => font.layoutRun(text, isNumber ? 'latn' : undefined));
    return {
      glyphs: parts.flatMap(({ glyphs }) => glyphs),
      positions: parts.flatMap(({ positions }) => positions),
      advanceWidth: parts.reduce((sum, part) => sum + part.advanceWidth, 0),
    };
  };
}
