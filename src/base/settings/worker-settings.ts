import { availableParallelism } from 'node:os';
import * as kind from './kinds.ts';

export const workerSettings = {
  TRAWL_RUNNER: {
    kind: kind.oneOf('process', 'kubernetes'),
    default: 'process',
    text: 'Where workers run: as processes of this machine or as Jobs of a cluster.',
  },
  TRAWL_WORKERS: {
    kind: kind.orWord('cores', availableParallelism, kind.count),
    default: 'cores',
    text: 'Most workers at once, processes or live Jobs; further jobs wait in the queue. `cores` is the number of processors.',
  },
  TRAWL_RESERVED_WORKERS: {
    kind: kind.countOrNone,
    default: '1',
    text: 'Workers that are kept for accounts without a running job, so that no account delays another; none is kept of fewer than 3 workers, or with 0. With one account alone, 0 lets it use all.',
  },
  TRAWL_PREEMPT_SECONDS: {
    kind: kind.seconds,
    default: '30',
    text: 'While no worker is kept: longest wait of an account without a worker while another account has all of them, in seconds; the youngest job of that one is then interrupted, once, and starts again later. A recording of a live source is not: instead, of several accounts none may record on every worker, unless there is only one worker.',
  },
  TRAWL_SANDBOX: {
    kind: kind.oneOf('auto', 'required', 'off'),
    default: 'auto',
    text: 'Isolation of children. `auto`: bubblewrap; where it does not work, as root a user id of their own, else Landlock alone, and no start without any of these. `required`: no start without bubblewrap. `off`: Landlock alone; without Landlock a child that is taken over can read the record.',
  },
  TRAWL_CGROUP: {
    kind: kind.text,
    absent: 'found by `trawl up`',
    text: 'Folder of a cgroup that is delegated to trawl: the children of each attempt get one below it, where the kernel keeps their memory limit. `off` only measures their memory. `trawl up` sets it for its own processes.',
  },
  TRAWL_YTDLP_PLUGINS: {
    kind: kind.folders,
    default: '',
    text: "Folders of the operator's own yt-dlp plugins, laid out as for `--plugin-dirs`, read-only for workers. In a cluster they are folders of the worker image.",
  },
  TRAWL_COOKIES: {
    kind: kind.text,
    text: 'Folder of cookie files, one per site, such as `example.com.txt`, in the Netscape format and of at most 256 KiB; a line that is no cookie is left out, and log and doctor name its number. The controller hands a worker only those of its site, for jobs of any account, and yt-dlp can read them: log in with accounts that you can lose.',
  },
  TRAWL_GATEWAY_ADDRESS: {
    kind: kind.address,
    text: 'Where a worker finds the gateway of the controller; `trawl up` sets it for its worker processes.',
  },
  TRAWL_EGRESS_ADDRESS: {
    kind: kind.address,
    text: 'Where controller, worker and inspector find the `egress` proxy; `trawl up` sets it for its own processes.',
  },
  TRAWL_INSPECTOR_ADDRESS: {
    kind: kind.address,
    text: 'Where API, dashboard and controller find the inspector, which itself listens on this port of TRAWL_HOST; `trawl up` sets it.',
  },
  TRAWL_TERMINATION_FILE: {
    kind: kind.text,
    text: "File to which a worker writes how it ended, for the pod's termination message; its Job sets it.",
  },
} as const satisfies kind.SettingTable;
