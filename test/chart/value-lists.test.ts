import { loadYaml } from '@kubernetes/client-node/dist/yaml.js';
import { expect } from 'chai';
import { settings } from '../../src/base/settings/settings.ts';
import { leavesOf, podsOf, render, scenarios, tryRender } from '../support/chart.ts';
import type { Json } from '../support/json.ts';
import { read } from '../support/tree.ts';

const load = (path: string) => loadYaml(read(`charts/trawl/${path}`)) as Json;
const values = load('values.yaml');
const valueAt = (of: Json, path: string) => path.split('.').reduce((group: Json, name) => group?.[name], of);
const checks = read('charts/trawl/templates/_checks.tpl');

const isGroup = (value: Json) => typeof value === 'object' && value !== null && Object.keys(value).length > 0;
const pathsOf = (value: Json, path = ''): string[] =>
  Object.entries(isGroup(value) && !Array.isArray(value) ? value : {}).flatMap(([name, below]) => {
    const own = path ? `${path}.${name}` : name;
    return [own, ...pathsOf(below, own)];
  });

describe('the lists of values that the chart holds', () => {
  it('name every number of values.yaml, so that a fraction or a name with nothing behind it is refused', () => {
    const numbers = leavesOf(values).filter((path) => typeof valueAt(values, path) === 'number');
    const taken = numbers.flatMap((path) =>
      [1.5, null].flatMap((wrong) => {
        const given = { 'doctor.enabled': true, [path]: wrong };
        const { err } = tryRender({ scenario: 'ci/everything-values.yaml', values: given });
        return err.includes(`${path} must be a whole number of`) ? [] : [`${path}: ${wrong}`];
      }),
    );
    expect(taken, 'missing in the list of numbers in _checks.tpl').to.deep.equal([]);
  });

  it('name a number whose group has nothing behind it, except that of an autoscaler, which then is none', () => {
    const given = (group: string) => tryRender({ values: { 'doctor.enabled': true, [group]: null } });
    for (const component of ['api', 'dashboard', 'inspector'])
      expect(given(`${component}.autoscaling`).err, component).to.equal('');
    for (const group of ['backup', 'doctor', 'test', 'uninstall', 'api.podDisruptionBudget'])
      expect(given(group).err).to.include(`${group}.`).and.to.include(' must be a whole number of');
  });

  it('name every group of values.yaml and every switch without which a template stumbles', () => {
    const groups = pathsOf(values).filter((path) => isGroup(valueAt(values, path)));
    const switches = leavesOf(values).filter((path) => typeof valueAt(values, path) === 'boolean');
    expect(groups.length).to.be.greaterThan(50);
    const stumbles = [...groups, ...switches].filter((path) => {
      const { code, err } = tryRender({ scenario: 'ci/everything-values.yaml', values: { [path]: null } });
      return code !== 0 && !/ must | has no values below it/.test(err);
    });
    expect(stumbles, 'missing in the list of groups or switches in _checks.tpl').to.deep.equal([]);
  });

  it('name every setting that a template sets, so that `settings` cannot set it a second time', () => {
    const listed = new Set([...checks.matchAll(/^(TRAWL_\w+): /gm)].map(([, name]) => name));
    const isSetting = (wanted: string) => settings.some(({ name }) => name === wanted);
    const missing = scenarios.flatMap((scenario) => {
      const names = podsOf(render({ scenario })).flatMap(({ pod }) =>
        [...(pod.initContainers ?? []), ...pod.containers].flatMap(({ env = [] }: Json) => env),
      );
      const own = names
        .map(({ name }) => (isSetting(name) ? name : name.replace(/_FILE$/, '')))
        .filter((name) => isSetting(name) && !(name in (load(scenario).settings ?? {})));
      return own.filter((name) => !listed.has(name));
    });
    expect([...new Set(missing)], 'missing in trawl.settingsOfValues of _checks.tpl').to.deep.equal([]);
  });

  for (const part of ['api', 'dashboard', 'controller', 'inspector', 'egress', 'workers']) {
    it(`have every value of ${part} in ci/everything-values.yaml, other than its default, and each changes what is made`, () => {
      const scenario = 'ci/everything-values.yaml';
      const everything = load(scenario);
      // Without this switch another value of its group would be seen nowhere.
      const paths = leavesOf(values[part], part).filter((path) => path !== `${part}.podDisruptionBudget.enabled`);
      const isDefault = (path: string) => {
        const given = valueAt(everything, path);
        return given === undefined || JSON.stringify(given) === JSON.stringify(valueAt(values, path));
      };
      expect(paths.filter(isDefault)).to.deep.equal([]);
      const isScaled = everything[part].autoscaling?.enabled === true;
      const made = tryRender({ scenario }).out;
      const unseen = paths.filter((path) => {
        const isRead = !(isScaled && path === `${part}.replicas`);
        return isRead && tryRender({ scenario, values: { [path]: valueAt(values, path) } }).out === made;
      });
      expect(unseen).to.deep.equal([]);
    });
  }
});
