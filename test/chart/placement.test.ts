import { expect } from 'chai';
import { podsOf, render, scenarios } from '../support/chart.ts';

/** Parts whose pods have values of their own; all other pods, of hooks and Jobs, go where the controller may. */
const parts = ['api', 'dashboard', 'controller', 'inspector', 'egress'];
/** Pods for trying out, which go anywhere. */
const bundled = ['redis', 's3'];

describe('the placement of the chart', () => {
  for (const scenario of scenarios) {
    it(`reaches every pod with ${scenario}, those of hooks and tests included`, () => {
      const placed = (part: string) => ({
        [`${part}.nodeSelector`]: { pool: part },
        [`${part}.tolerations`]: [{ key: part, operator: 'Exists' }],
        [`${part}.priorityClassName`]: part,
      });
      const apart = { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'kubernetes.io/hostname' }] };
      const near = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } };
      const affinity = { nodeAffinity: near, podAntiAffinity: apart };
      const given = { 'doctor.enabled': true, 'controller.affinity': affinity };
      const values = Object.assign(given, ...parts.map(placed));
      const pods = podsOf(render({ scenario, values })).map(({ pod, labels }) => ({
        component: labels['app.kubernetes.io/component'] as string,
        pod,
      }));
      expect(pods.map(({ component }) => component)).to.include.members(['uninstall', 'test', 'doctor']);
      for (const { component, pod } of pods.filter((one) => !bundled.includes(one.component))) {
        const part = parts.includes(component) ? component : 'controller';
        expect(pod.nodeSelector, component).to.include({ pool: part });
        expect(pod.tolerations, component).to.deep.equal([{ key: part, operator: 'Exists' }]);
        expect(pod.priorityClassName, component).to.equal(part);
        if (part !== 'controller') continue;
        // Pods that run once keep away from nobody: with a controller on each node they would start nowhere.
        expect(pod.affinity, component).to.deep.equal(component === part ? affinity : { nodeAffinity: near });
      }
    });
  }
});
