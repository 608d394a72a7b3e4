/** Finalizer that keeps a Job or pod, whoever deletes it, until the record holds how its attempt ended. */
export const finalizer = 'trawl/unsettled';

export const workerLabels = {
  'app.kubernetes.io/managed-by': 'trawl',
  'app.kubernetes.io/component': 'worker',
} as const;

export const workerSelector = Object.entries(workerLabels)
  .map(([name, value]) => `${name}=${value}`)
  .join(',');

/** Job id in the labels of pods that try the network of workers: no record holds it. */
export const trialJobId = 'network-trial';

/** Selector of the objects of attempts: a controller would remove every other worker. */
export const attemptSelector = `${workerSelector},trawl/job!=${trialJobId}`;

export const jobNameLabel = 'batch.kubernetes.io/job-name';
