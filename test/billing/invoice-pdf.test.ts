import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import { writeInvoicePdf } from '../../src/billing/invoice-pdf.ts';
import { visualOrder } from '../../src/billing/visual-order.ts';
import type { EndedPurchase } from '../../src/model/purchase.ts';

const purchase: EndedPurchase = {
  ...{ id: 'p', account: 'a', kind: 'topup', pack_title: 'Пакет <b>5 000</b> Ωμέγα', pack_total: 5_000 },
  ...{ price_cents: 4_990, currency: 'eur', customer: 'cus', payment_method: 'pm', state: 'paid', payment: 'pi_7' },
  ...{ ended_at: Date.UTC(2026, 10, 23, 12), invoice: 7, buyer: 'Łódź Żółć Films' },
  seller: { name: 'Films Ltd', address: '1 Main Street\n12345 Köln', tax: 'VAT 19 % contained' },
};
const textOf = (pdf: Buffer) =>
  execFileSync('pdftotext', ['-layout', '-', '-'], { input: pdf }).toString().replace(/\s+/g, ' ');

describe('the invoice as PDF', () => {
  it('is one page whose text can be selected, in the letters of the names', async () => {
    const pdf = await writeInvoicePdf(purchase);
    expect(pdf.length).to.be.below(200_000);
    const told = execFileSync('pdfinfo', ['-'], { input: pdf }).toString();
    expect(told)
      .to.match(/Title: +Invoice INV-000007\n/)
      .and.match(/Pages: +1\n/)
      .and.match(/A4/);
    for (const word of [
      ...['INV-000007', '2026-11-23', 'Films Ltd', '1 Main Street', '12345 Köln', 'Łódź Żółć Films'],
      ...['Пакет <b>5 000</b> Ωμέγα (5000 credits)', 'EUR 49.90', 'VAT 19 % contained', 'pi_7'],
    ]) {
      expect(textOf(pdf)).to.include(word);
    }
  });

  it('shows names in Chinese, Japanese, Korean, Thai and Hindi, and stays small', async () => {
    const names = ['北京电影有限公司', '株式会社 山田フィルム', '주식회사 영화', 'บริษัท ภาพยนตร์', 'फिल्म कंपनी'];
    const pdf = await writeInvoicePdf({ ...purchase, buyer: names.join(', '), pack_title: '🎬 5,000' });
    const fonts = execFileSync('pdffonts', ['-'], { input: pdf }).toString();
    expect(fonts).to.match(/Unifont\S* .* yes yes yes /);
    for (const name of names.slice(0, 3)) expect(textOf(pdf)).to.include(name);
    expect(pdf.length).to.be.below(200_000);
  });

  /** Returns the words of a row from left to right; each Hebrew or Arabic one as it is drawn. */
  const drawnRow = async (row: 'Buyer' | 'Item', names: Partial<EndedPurchase>) => {
    const input = await writeInvoicePdf({ ...purchase, ...names });
    const told = execFileSync('pdftotext', ['-bbox', '-', '-'], { input }).toString();
    const words = [...told.matchAll(/<word xMin="([\d.]+)" yMin="([\d.]+)"[^>]*>([^<]*)</g)];
    const line = words.find(([, , , word]) => word === row)?.[2];
    const found = words.filter(([, , y]) => y === line).sort((a, b) => Number(a[1]) - Number(b[1]));
    return found.slice(1).map(([, , , word]) => word!.replace('&quot;', '"'));
  };

  it('writes names in Hebrew and Arabic from right to left, and the numbers in them from left to right', async () => {
    const buyer = await drawnRow('Buyer', { buyer: 'חברת הסרטים (ישראל) בע"מ 2026' });
    expect(buyer).to.deep.equal(['2026', 'מ"עב', '(לארשי)', 'םיטרסה', 'תרבח']);
    const item = await drawnRow('Item', { pack_title: 'حزمة ٥٠٠٠' });
    expect(item).to.deep.equal(['٥٠٠٠', 'ةمزح', '(5000', 'credits)']);
  });

  for (const [name, drawn] of [
    ['טל 03-1234567 בלבד', 'דבלב 03-1234567 לט'],
    ['הנחה 50% לשנה', 'הנשל 50% החנה'],
    ['מחיר $5,000.50 בלבד', 'דבלב $5,000.50 ריחמ'],
    ['חבילה 2025-2026 Ltd', '2025-2026 הליבח Ltd'],
    ['2026 חבילה', '2026 הליבח'],
    ['חברה «קול» חדש', 'שדח «לוק» הרבח'],
  ] as const) {
    it(`draws the name ${name} as ${drawn}, with its numbers, signs and brackets as they are read`, async () => {
      expect((await drawnRow('Buyer', { buyer: name })).join(' ')).to.equal(drawn);
    });
  }

  it('keeps the last mark of an Arabic name at its letter', () => {
    expect(visualOrder('شركةٌ Ltd').map(({ text }) => text)).to.deep.equal(['شركةٌ', ' Ltd']);
  });

  it('is written for the longest names, too', async () => {
    const long = { ...purchase, pack_title: 'x'.repeat(5_000), buyer: 'word '.repeat(400) };
    expect(textOf(await writeInvoicePdf(long))).to.include('pi_7');
  });
});
