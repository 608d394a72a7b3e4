import { readFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import PDFDocument from 'pdfkit';
import { type EndedPurchase, invoiceNumber } from '../model/purchase.ts';
import { invoiceRows } from './invoice.ts';
import { unpackWoff } from './unpack-woff.ts';

const fileOf = (module: string) => fileURLToPath(import.meta.resolve(module));
/** Latin, Greek and Cyrillic names are written as they are; the fonts of every PDF reader know only the first. */
const fonts = {
  plain: fileOf('dejavu-fonts-ttf/ttf/DejaVuSans.ttf'),
  bold: fileOf('dejavu-fonts-ttf/ttf/DejaVuSans-Bold.ttf'),
};
/** Letters of nearly every script, Chinese, Japanese and Korean among them, drawn coarsely: 3 MB, where fine ones would be 30. */
const everyLetter = fileOf('@fontsource/unifontex/files/unifontex-latin-400-normal.woff');
/** Part of a font that pdfkit keeps to itself. */
interface OpenFont {
  hasGlyphForCodePoint(codePoint: number): boolean;
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
    page.text(text, valueX, y, { width: valueWidth });
    page.y += gap;
  }
  page.end();
  return written;
}

/** Returns whether the present font of a page has every letter of a text. */
function hasLetters(page: PDFKit.PDFDocument, text: string): boolean {
  const { font } = (page as unknown as { readonly _font: { readonly font: OpenFont } })._font;
  return Array.from(text.replaceAll('\n', '')).every((letter) => font.hasGlyphForCodePoint(letter.codePointAt(0)!));
}
