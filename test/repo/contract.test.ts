import { expect } from 'chai';
import { files, read, texts } from '../support/tree.ts';

/** Every row of the interface specification, which is not in this repository. */
const contract = `
operation-1 operation-2 operation-3 operation-4 operation-5 operation-6
price-audio price-video price-metadata price-jobs price-usage price-stats
billing-1 billing-2 billing-3 billing-4 billing-5 billing-6 billing-7 billing-8
job-id job-status job-success job-endpoint job-created_at job-started_at job-completed_at job-duration_ms job-progress job-args
job-result job-error metadata-fields metadata-live_status metadata-upload_date
usage-remaining usage-total_used usage-renewal_date usage-period usage-subscription usage-packs usage-packs-items usage-credits
usage-rate_limit usage-account usage-api_key usage-reduced stats-fields stats-health stats-private
key-alias key-category key-active key-expires key-quotas key-secret log-entry error-body
job-statuses key-deactivate key-reactivate key-expire key-delete-unused key-delete-used
topup-enable topup-buy topup-fail topup-disable packs-order
paths video-query video-download_type video-max_duration video-video_quality video-video_format video-webhook_url
video-webhook_authorization video-hour video-closed video-answer audio-query audio-download_type audio-max_duration
audio-audio_quality audio-audio_format audio-webhook_url audio-webhook_authorization audio-closed audio-answer
metadata-query metadata-answer metadata-closed jobs-id jobs-answer usage-answer stats-engine stats-path stats-answer stats-errors
global-x_api_key global-soft_fail global-is_async global-fields fields-blanks fields-unknown fields-top fields-nested fields-price
auth-1 auth-2 auth-3 auth-4 auth-5 auth-6 auth-7 auth-8 auth-9
events-1 events-2 events-3 events-4 events-5 events-6 events-7
error-400 error-401-invalid error-401-inactive error-401-expired error-401-quota error-402 error-403-blocked error-403-forbidden
error-404 error-413 error-429 error-500 error-503 rule-1 rule-2 rule-3 rule-4 rule-5
limit-total limit-daily limit-weekly limit-monthly limit-none limit-freshness limit-rate limit-hour limit-webhook
limit-topup-threshold limit-topup-cooldown limit-topup-plan limit-stats limit-client limit-size versioning`;
const decisions = Array.from({ length: 97 }, (_, n) => `D${n + 1}`);

interface Row {
  readonly id: string;
  /** `file › how a title begins`. */
  readonly tests: readonly string[];
  /** Folders of src, or files without their ending, that are not there yet. */
  readonly follows: readonly string[];
}

const rows = readRows(read('docs/contract.md'));

describe('docs/contract.md', () => {
  it('has every row of the interface and every decision once, and no other', () => {
    expect(rows.map(({ id }) => id)).to.deep.equal([...contract.trim().split(/\s+/), ...decisions]);
  });

  it('has a test, or a folder to come, in every row', () => {
    expect(rows.filter(({ tests, follows }) => tests.length + follows.length === 0).map(({ id }) => id)).to.deep.equal(
      [],
    );
  });

  it('names tests that are there', () => {
    const lost = rows.flatMap(({ id, tests }) => tests.filter((test) => !isTest(test)).map((test) => `${id}: ${test}`));
    expect(lost).to.deep.equal([]);
  });

  it('waits for nothing that has come', () => {
    const come = rows.flatMap(({ id, follows }) =>
      follows.filter(isBuilt).map((folder) => `${id}: ${folder} is there`),
    );
    expect(come).to.deep.equal([]);
  });
});

function readRows(text: string): Row[] {
  return [...text.matchAll(/^\| ([\w-]+) \| [^|]+ \| ([^|]*) \|$/gm)]
    .filter(([, id]) => id !== 'id' && id !== '---')
    .map(([, id = '', proof = '']) => ({
      id,
      tests: [...proof.matchAll(/`([^`]+)`/g)].map(([, test]) => test!),
      follows: /follows with ([^`]+)$/.exec(proof)?.[1]?.split(', ') ?? [],
    }));
}

/** Whether a file of tests has a text that begins so: a title, or a row of the table that a title is made of. */
function isTest(test: string): boolean {
  const [, file = '', title = ''] = /^([\w/-]+\.(?:test|suite|contract)\.ts) › (.+)$/.exec(test) ?? [];
  const source = texts.get(`test/${file}`);
  return source !== undefined && ["'", '"', '`'].some((quote) => source.includes(quote + title));
}

function isBuilt(folder: string): boolean {
  return files.some((path) => path.startsWith(`${folder}/`) || path === `${folder}.ts`);
}
