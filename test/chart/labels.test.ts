import { expect } from 'chai';
import { find, podsOf, render } from '../support/chart.ts';

describe('the labels of the chart', () => {
  it('stand once in each object, where those of a value have the name of one of ours', () => {
    // `render` refuses a name that stands twice, as kustomize and post-renderers of Helm do.
    const objects = render({
      scenario: 'ci/everything-values.yaml',
      values: {
        commonLabels: { 'app.kubernetes.io/part-of': 'media', 'helm.sh/chart': 'platform', tier: 'films' },
        'api.podLabels': { tier: 'front', 'app.kubernetes.io/version': 'of-ours' },
        'controller.podLabels': { 'app.kubernetes.io/part-of': 'core' },
        'monitoring.podMonitor.labels': { tier: 'watch' },
        'monitoring.dashboards.label': 'tier',
      },
    });
    const partOf = 'app.kubernetes.io/part-of';
    for (const { kind, metadata } of objects.filter(({ kind }) => kind !== 'Pod' && kind !== 'ConfigMap'))
      expect(metadata.labels, `${kind} ${metadata.name}`).to.include({
        [partOf]: 'media',
        'helm.sh/chart': 'platform',
      });
    const labelsOf = (wanted: string) => podsOf(objects).find(({ name }) => name === wanted)?.labels;
    expect(labelsOf('trawl-api')).to.include({ tier: 'front', 'app.kubernetes.io/version': 'of-ours' });
    expect(labelsOf('trawl-egress')).to.include({ tier: 'films' });
    for (const name of ['trawl-controller', 'trawl-test', 'trawl-uninstall'])
      expect(labelsOf(name), name).to.include({ [partOf]: 'core' });
    expect(find(objects, 'PodMonitor', 'trawl').metadata.labels.tier).to.equal('watch');
    expect(find(objects, 'ConfigMap', 'trawl-dashboard-money').metadata.labels.tier).to.equal('yes');
  });
});
