import { expect } from 'chai';
import { readConfig } from '../../src/base/config.ts';
import { find, render } from '../support/chart.ts';
import { environmentOf } from '../support/chart-environment.ts';
import type { Json } from '../support/json.ts';

describe('the doctor of the chart', () => {
  it('judges the proxies and the dashboard by the settings of what serves callers', () => {
    const objects = render({ scenario: 'ci/everything-values.yaml' });
    const judged = (component: string) => {
      const { values, readFile } = environmentOf(objects, component);
      const { trustedProxies, dashboardUrl, publicUrl } = readConfig(values, {}, readFile);
      return { trustedProxies, dashboardUrl, publicUrl };
    };
    expect(judged('api').trustedProxies).to.have.length(1);
    for (const component of ['doctor', 'controller']) expect(judged(component)).to.deep.equal(judged('api'));
  });

  it('reads the cookie files of the controller', () => {
    const objects = render({ scenario: 'ci/everything-values.yaml' });
    const cookiesOf = (kind: string, component: string) => {
      const { containers, volumes } = find(objects, kind, `trawl-${component}`).spec.template.spec;
      const ofCookies = ({ name }: Json) => name === 'cookies';
      return [containers[0].volumeMounts.filter(ofCookies), volumes.filter(ofCookies)];
    };
    expect(cookiesOf('Job', 'doctor')).to.deep.equal(cookiesOf('Deployment', 'controller'));
    expect(cookiesOf('Job', 'doctor').flat()).to.have.length(2);
  });
});
