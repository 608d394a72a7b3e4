import { isJsonObject, parseJson } from '../parse-json.ts';
import { pattern, type SettingKind, whole } from './kinds.ts';

export const namespace = pattern('the name of a Kubernetes namespace', /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/);

export const kubeName = pattern('the name of an object of Kubernetes', /^(?=.{1,253}$)[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/);

/** Fields of a pod that say where it runs and whom it asks for names; each is checked by the cluster. */
export interface PodPlacement {
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly Readonly<Record<string, unknown>>[];
  readonly affinity?: Readonly<Record<string, unknown>>;
  readonly dnsPolicy?: string;
  readonly dnsConfig?: Readonly<Record<string, unknown>>;
}

const placementFields = ['nodeSelector', 'tolerations', 'affinity', 'dnsPolicy', 'dnsConfig'];

export const podPlacement: SettingKind<PodPlacement> = {
  allowed: `JSON of a pod with no fields but ${placementFields.join(', ')}`,
  read: (text) => {
    const value = parseJson(text);
    const isKnown = isJsonObject(value) && Object.keys(value).every((name) => placementFields.includes(name));
    return isKnown && (value.tolerations === undefined || Array.isArray(value.tolerations)) ? value : undefined;
  },
};

export const quantity = pattern('a quantity of Kubernetes such as 250m or 3Gi', /^[1-9]\d*(\.\d+)?(m|[kKMGTP]i?)?$/);

/** The kubelet ends a pod an hour after the time of its attempt, counted from before its start: a longer one would take from that time. */
export const startSeconds = whole('a whole number of seconds from 1 to 3000', 1, 3_000);
