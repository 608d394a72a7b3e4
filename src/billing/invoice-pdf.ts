import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import PDFDocument from 'pdfkit';
import { type EndedPurchase, invoiceNumber } from '../model/purchase.ts';
import { invoiceRows } from './invoice.ts';

/** Latin, Greek and Cyrillic names are written as they are; the fonts of every PDF reader know only the first. */
const fonts = {
  plain: fileURLToPath(import.meta.resolve('dejavu-fonts-ttf/ttf/DejaVuSans.ttf')),
  bold: fileURLToPath(import.meta.resolve('dejavu-fonts-ttf/ttf/DejaVuSans-Bold.ttf')),
};
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
  for (const [name, value] of invoiceRows(purchase)) {
    const { y } = page;
    page.font(fonts.bold).text(name, margin, y, { width: nameWidth });
    page.font(fonts.plain).text(value.slice(0, maxValueLength), valueX, y, { width: valueWidth });
    page.y += gap;
  }
  page.end();
  return written;
}
