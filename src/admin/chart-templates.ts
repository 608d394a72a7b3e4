import type { Setting } from '../base/settings/kinds.ts';
import { settings } from '../base/settings/settings.ts';
import type { AdmissionAllowances } from '../runners/kubernetes/admission-rules.ts';
import type { WorkerShape } from '../runners/kubernetes/job-manifest.ts';
import { makeAdmissionPolicy } from '../runners/kubernetes/namespace-policies.ts';

/** Parts of a worker that an installation has or lacks; rules differ with them. */
const switches = [
  ...(['priorityClass', 'runtimeClass', 'queue', 'hostUsers', 'network', 'plugins', 'pullSecrets'] as const),
  ...(['caConfigMap', 'clusterUser'] as const),
] as const;
type ChosenParts = Readonly<Record<(typeof switches)[number], boolean>>;

/** Values that stand in the rules where a template has to write those of an installation. */
const texts = ['namespace', 'image', 'account', 'gateway', 'egress', 'logLevel', 'cpu', 'memory', 'dnsPolicy'] as const;
/** Values of any JSON. */
const structures = ['nodeSelector', 'affinity', 'dnsConfig'] as const;
const numberNames = ['awaySeconds', 'maxSeconds', 'diskBytes'] as const;
/** Numbers so large, and so far apart, that `fill` finds each again in a rule that adds something to it. */
const numbers = Object.fromEntries(numberNames.map((name, n) => [name, 1e12 * 4 ** n])) as Record<
  (typeof numberNames)[number],
  number
>;
const mark = (name: string) => `@${name}@`;

/** Returns the generated templates of the chart by the names of their files. */
export function makeChartTemplates(): Record<string, string> {
  const { matchConditions, variables } = makeAdmissionPolicy(shapeOf(noneChosen)).spec ?? {};
  return {
    '_admission.tpl': `{{- /* Written by src/admin/write-chart.ts out of src/runners/kubernetes/admission-rules.ts; do not edit. */ -}}
{{- define "trawl.admissionConditions" -}}
matchConditions:
${(matchConditions ?? []).map(writeRule).join('\n')}
variables:
${(variables ?? []).map(writeRule).join('\n')}
{{- end }}

{{- define "trawl.admissionRules" -}}
${writeRules()}
{{- end }}
`,
    '_settings.tpl': `{{- /* Written by src/admin/write-chart.ts out of src/base/settings; do not edit. */ -}}
{{- define "trawl.settingDefaults" -}}
${settings.map(({ name, default: value }: Setting) => `${name}: ${JSON.stringify(value ?? null)}`).join('\n')}
{{- end }}

{{- define "trawl.settingForms" -}}
${settings.flatMap(writeForm).join('\n')}
{{- end }}
`,
  };
}

/** Helm's expressions look nowhere but at the next character, so a form that looks ahead is left out. */
function writeForm({ name, kind: { form, allowed } }: Setting): string[] {
  if (form === undefined || form.source.includes('(?')) return [];
  return [`${name}: {form: ${JSON.stringify(form.source)}, allowed: ${JSON.stringify(allowed)}}`];
}

function writeRules(): string {
  const all = combinations().map((chosen) => [chosen, numberRules(chosen)] as const);
  const [, most = new Map<string, string>()] = all.find(([chosen]) => switches.every((name) => chosen[name])) ?? [];
  const lines = [...most.keys()].map((name) => {
    const variants = all.map(([chosen, rules]) => ({ chosen, text: rules.get(name) ?? '' }));
    return choose(variants, switches);
  });
  const whole = lines.join('\n');
  if (/@\w+@/.test(whole)) throw new Error('a rule holds a value that the chart cannot write');
  return whole;
}

/** Returns a template that writes the variant of what is chosen, with conditions on what makes a difference. */
function choose(
  variants: readonly { readonly chosen: ChosenParts; readonly text: string }[],
  left: readonly (keyof ChosenParts)[],
): string {
  const [first] = variants;
  if (first === undefined || variants.every(({ text }) => text === first.text)) return first?.text ?? '';
  const [name, ...others] = left;
  if (name === undefined) throw new Error('two rules of one installation differ');
  const [on, off] = [true, false].map((wanted) => {
    return choose(
      variants.filter(({ chosen }) => chosen[name] === wanted),
      others,
    );
  });
  if (on === off) return on ?? '';
  const otherwise = off ? `\n{{- else }}\n${off}` : '';
  return `{{- if .${name} }}\n${on}${otherwise}\n{{- end }}`;
}

const noneChosen = Object.fromEntries(switches.map((name) => [name, false])) as ChosenParts;

function combinations(): ChosenParts[] {
  return Array.from({ length: 2 ** switches.length }, (_, bits) => {
    return Object.fromEntries(switches.map((name, place) => [name, (bits & (1 << place)) > 0])) as ChosenParts;
  });
}

/** Returns the rules as templates of YAML; a message that stands twice gets a number. */
function numberRules(chosen: ChosenParts): Map<string, string> {
  const policy = makeAdmissionPolicy(shapeOf(chosen), allowancesOf(chosen));
  const named = new Map<string, string>();
  for (const rule of policy.spec?.validations ?? []) {
    let name = rule.message ?? '';
    while (named.has(name)) name += ' ';
    named.set(name, writeRule(rule));
  }
  return named;
}

function writeRule(rule: object): string {
  const fields = Object.entries<string>({ ...rule }).map(
    ([name, value]) => `${name}: |-\n    ${fill(value).replaceAll('\n', '\n    ')}`,
  );
  return `- ${fields.join('\n  ')}`;
}

/** Puts what a template writes in the place of every mark. */
function fill(text: string): string {
  if (text.includes('{{')) throw new Error(`a template would read ${text}`);
  return text
    .replaceAll(
      ' || variables.worker.resources == "@resources@"',
      '{{ range .resources }} || {{ include "trawl.areResources" . }}{{ end }}',
    )
    .replaceAll(/, dyn\("@tolerations@"\)/g, '{{ range .tolerations }}, dyn({{ include "trawl.cel" . }}){{ end }}')
    .replaceAll(/"@(\w+)@"/g, (whole, name: string) =>
      (structures as readonly string[]).includes(name) ? `{{ include "trawl.cel" .${name} }}` : whole,
    )
    .replaceAll(/"@(\w+)@"/g, (whole, name: string) => (isText(name) ? `{{ .${name} | toRawJson }}` : whole))
    .replaceAll(/dyn\("@images@"\)/g, '{{ include "trawl.dyns" .images }}')
    .replaceAll(/(, )?dyn\("@marks@"\)(, )?/g, (_, before = '', after = '') => {
      return `${before && after}{{ with .marks }}${after ? '' : before}{{ include "trawl.dyns" . }}${after}{{ end }}`;
    })
    .replaceAll(/dyn\(\{"name": dyn\("@pullSecrets@"\)\}\)/g, '{{ include "trawl.dynNames" .pullSecrets }}')
    .replaceAll(/\d{13,}/g, (digits) => {
      const [name, base] = Object.entries(numbers).find(([, size]) => Math.abs(Number(digits) - size) < size / 2) ?? [];
      if (name === undefined || base === undefined) throw new Error(`the chart cannot write ${digits}`);
      const more = Number(digits) - base;
      return more === 0 ? `{{ int64 .${name} }}` : `{{ add (int64 .${name}) ${more} }}`;
    });
}

function isText(name: string): boolean {
  return ([...texts, ...switches] as readonly string[]).includes(name) && name !== 'pullSecrets';
}

function shapeOf(chosen: ChosenParts): WorkerShape {
  const optional = (name: keyof ChosenParts) => (chosen[name] ? mark(name) : null);
  return {
    namespace: mark('namespace'),
    image: mark('images'),
    serviceAccount: mark('account'),
    env: {
      TRAWL_GATEWAY_ADDRESS: mark('gateway'),
      TRAWL_EGRESS_ADDRESS: mark('egress'),
      TRAWL_LOG_LEVEL: mark('logLevel'),
      ...(chosen.network && { TRAWL_WORKER_NETWORK: mark('network') }),
      ...(chosen.plugins && { TRAWL_YTDLP_PLUGINS: mark('plugins') }),
    },
    cpu: mark('cpu'),
    memory: mark('memory'),
    ...numbers,
    runtimeClass: optional('runtimeClass'),
    priorityClass: optional('priorityClass'),
    queue: optional('queue'),
    caConfigMap: optional('caConfigMap'),
    placement: {
      ...Object.fromEntries([...structures, 'dnsPolicy'].map((name) => [name, mark(name)])),
      tolerations: [mark('tolerations') as unknown as Record<string, unknown>],
    },
    startSeconds: 0,
    hostUsers: chosen.hostUsers,
    clusterUser: chosen.clusterUser,
  };
}

function allowancesOf({ pullSecrets }: ChosenParts): AdmissionAllowances {
  const names = [{ name: mark('pullSecrets') }];
  const resources = { name: 'worker.resources', value: mark('resources') };
  return {
    images: [],
    fields: pullSecrets ? [resources, { name: 'imagePullSecrets', value: names }] : [resources],
    marks: [mark('marks')],
  };
}
