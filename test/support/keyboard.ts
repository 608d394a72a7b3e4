import { expect } from 'chai';
import type { Locator, Page } from 'playwright-core';

/** More stops than any page has. */
const maxStops = 150;

/** What the functions below see of a page, in which they run. */
interface PageGlobals {
  readonly document: { readonly activeElement: PageElement; readonly body: PageElement };
  readonly innerHeight: number;
  getComputedStyle(element: PageElement): { readonly outlineStyle: string; readonly outlineWidth: string };
}
interface PageElement {
  readonly tagName: string;
  readonly textContent: string;
  getAttribute(name: string): string | null;
  getBoundingClientRect(): { readonly top: number; readonly bottom: number };
}

/** Where the focus is, whether a person sees it there, and whether that is the element. */
const readFocus = (element: unknown) => {
  const { document, innerHeight, getComputedStyle } = globalThis as unknown as PageGlobals;
  const at = document.activeElement;
  const { outlineStyle, outlineWidth } = getComputedStyle(at);
  const { top, bottom } = at.getBoundingClientRect();
  const isOutlined = outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2;
  return {
    name: `${at.tagName} ${(at.getAttribute('aria-label') ?? at.textContent).trim().slice(0, 40)}`,
    // The page itself gets the focus when what had it has gone; Tab never stops there.
    isShown: at === document.body || at.tagName === 'MAIN' || (isOutlined && bottom > 0 && top < innerHeight),
    isWanted: at === element,
  };
};

/** Presses Tab until an element has the focus, as people without a pointer do; fails at a stop where nobody sees the focus. */
export async function tabTo(page: Page, wanted: Locator): Promise<void> {
  const passed: string[] = [];
  for (let stop = 0; stop < maxStops; stop++) {
    await page.keyboard.press('Tab');
    const { name, isShown, isWanted } = await wanted.evaluate(readFocus);
    passed.push(name);
    expect(isShown, `the focus is seen at ${name}`).to.equal(true);
    if (isWanted) return;
  }
  throw new Error(`Tab never comes to ${wanted}; it passed ${passed.slice(0, 40).join(', ')}`);
}

/** Goes to an element by Tab and presses a key there. */
export async function pressAt(page: Page, wanted: Locator, key: 'Enter' | 'Space' = 'Enter'): Promise<void> {
  await tabTo(page, wanted);
  await page.keyboard.press(key);
}

/** Goes to a field by Tab and types. */
export async function typeAt(page: Page, wanted: Locator, text: string): Promise<void> {
  await tabTo(page, wanted);
  await page.keyboard.type(text);
}

/** Fails unless an element has the focus. */
export async function expectFocus(wanted: Locator): Promise<void> {
  const { name, isWanted } = await wanted.evaluate(readFocus);
  expect(isWanted, `the focus is at ${wanted}, not at ${name}`).to.equal(true);
}
