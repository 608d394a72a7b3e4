import { expect } from 'chai';
import { checkDashboard } from '../../src/admin/check-settings.ts';

describe('the doctor, of the dashboard,', () => {
  for (const [title, dashboardUrl, dashboardPort, level, text] of [
    ['accepts one behind TLS', 'https://d.test', 8081, 'ok', /https:\/\/d\.test; it is served at port 8081/],
    ['says that one is apart', 'https://d.test', null, 'ok', /role dashboard serves it apart/],
    ['accepts one for this machine alone', 'http://[::1]:8081', 8081, 'ok', /\[::1\]/],
    ['warns of one without TLS', 'http://d.test', 8081, 'note', /without TLS: passwords and sessions can be read/],
  ] as const) {
    it(title, () => {
      const finding = checkDashboard({ dashboardUrl, dashboardPort });
      expect(finding.level).to.equal(level);
      expect(finding.text).to.match(text);
    });
  }
});
