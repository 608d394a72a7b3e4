import { availableParallelism } from 'node:os';
import * as kind from './kinds.ts';

export const workerSettings = [
  {
    name: 'TRAWL_RUNNER',
    kind: kind.oneOf('process', 'kubernetes'),
    default: 'process',
    text: 'Where workers run: as processes of this machine or as Jobs of a cluster.',
  },
  {
    name: 'TRAWL_WORKERS',
    kind: kind.orWord('cores', availableParallelism, kind.count),
    default: 'cores',
    text: 'Most workers at once, processes or live Jobs; further jobs wait in the queue. `cores` is the number of processors.',
  },
  {
    name: 'TRAWL_SANDBOX',
    kind: kind.oneOf('auto', 'required', 'off'),
    default: 'auto',
    text: 'Bubblewrap sandbox around worker processes: `auto` uses it when it works and warns when it does not, `required` refuses to start without it.',
  },
  {
    name: 'TRAWL_YTDLP_PLUGINS',
    kind: kind.folders,
    default: '',
    text: "Folders of the operator's own yt-dlp plugins, laid out as for `--plugin-dirs`, read-only for workers. In a cluster they are folders of the worker image.",
  },
  {
    name: 'TRAWL_COOKIES',
    kind: kind.text,
    default: null,
    text: 'Folder of cookie files, one per site, such as `example.com.txt`, of at most 256 KiB. The controller hands a worker only those of its site.',
  },
  {
    name: 'TRAWL_GATEWAY_ADDRESS',
    kind: kind.address,
    default: null,
    text: 'Where a worker finds the gateway of the controller; `trawl up` sets it for its worker processes.',
  },
  {
    name: 'TRAWL_EGRESS_ADDRESS',
    kind: kind.address,
    default: null,
    text: 'Where controller, worker and inspector find the `egress` proxy; `trawl up` sets it for its own processes.',
  },
  {
    name: 'TRAWL_INSPECTOR_ADDRESS',
    kind: kind.address,
    default: null,
    text: 'Where API and controller find the inspector, which itself listens on this port of TRAWL_HOST; `trawl up` sets it.',
  },
  {
    name: 'TRAWL_TERMINATION_FILE',
    kind: kind.text,
    default: null,
    text: "File to which a worker writes how it ended, for the pod's termination message; its Job sets it.",
  },
] as const satisfies readonly kind.Setting[];
