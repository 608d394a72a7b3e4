import * as kind from './kinds.ts';

export const limitSettings = {
  TRAWL_MAX_FILE_BYTES: {
    kind: kind.count,
    default: '10737418240',
    text: 'Largest file of a job, in bytes; a larger one ends the job as `file_too_large`.',
  },
  TRAWL_JOB_SECONDS: {
    kind: kind.seconds,
    default: '7200',
    text: 'Longest run of one attempt, in seconds from the start of its worker; the worker is then stopped and the attempt fails as `timeout`.',
  },
  TRAWL_INSPECT_SECONDS: {
    kind: kind.seconds,
    default: '50',
    text: 'Longest wait for the metadata of a URL, in seconds; the call then fails as `timeout`.',
  },
  TRAWL_ATTEMPTS: {
    kind: kind.count,
    default: '3',
    text: 'Most attempts of a job whose failure is retryable (docs/errors.md); the last failure then ends the job.',
  },
  TRAWL_QUEUE_HOURS: {
    kind: kind.duration,
    default: '24',
    text: 'Longest wait of a job in the queue and for a worker that runs, such as for a node, in hours; it then ends as `queue_timeout`.',
  },
  TRAWL_WEBHOOK_SECONDS: {
    kind: kind.seconds,
    default: '10',
    text: 'Longest wait for the answer to a webhook, in seconds; the attempt then failed and is repeated.',
  },
  TRAWL_WEBHOOK_GAP_SECONDS: {
    kind: kind.seconds,
    default: '5',
    text: 'Seconds from the end of one attempt to deliver a webhook to the next one.',
  },
} as const satisfies kind.SettingTable;
