import { expect } from 'chai';
import { listKeys } from '../../src/store/accounts/read-keys.ts';
import { expectAccessible } from '../support/browser.ts';
import { freezeProcess } from '../support/freeze-process.ts';
import { eachWithVisits, type VisitedDashboard } from '../support/visited-dashboard.ts';

describe('the dashboard without Redis', () => {
  let on: VisitedDashboard;
  eachWithVisits((visited) => {
    on = visited;
  });
  let goOn = () => {};
  afterEach(() => goOn());

  it('a page says once that Redis does not answer, says of each change whether it may be sent again, and goes on by itself', async () => {
    const { page } = await on.signIn();
    await on.show(page, '/keys');
    goOn = await freezeProcess(on.api.redis.pid());
    await page.getByRole('button', { name: 'Create a key' }).click();
    await page.getByLabel('Alias').fill('once');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByRole('alert').filter({ hasText: 'the change may have been made' }).waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('link', { name: 'Download', exact: true }).click();
    await page.getByLabel('Address of a video or sound').fill('https://example.com/film.mp4');
    await page.getByRole('button', { name: 'Download', exact: true }).click();
    await page.getByRole('alert').filter({ hasText: 'nothing is started or charged twice' }).waitFor();
    await page.getByRole('link', { name: 'Billing' }).click();
    await page.getByRole('alert').filter({ hasText: 'cannot answer just now' }).waitFor();
    expect(await page.getByRole('button', { name: 'Try again' }).count()).to.equal(1);
    await expectAccessible(page);
    await on.photograph(page, 'redis-away');
    goOn();
    await page.getByText('Credits left').waitFor();
    const made = (await listKeys(on.api.store, on.caller.account)).filter(({ alias }) => alias === 'once');
    expect(made.length).to.be.at.most(1);
  });
});
