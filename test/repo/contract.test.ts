import { expect } from 'chai';
import { contractPage, makeContractPage, proofs, rows, rowsOf } from '../contract/page.ts';
import { read } from '../support/tree.ts';
import { files } from '../support/tree-files.ts';

const ids = rows.map(({ id }) => id);
const proved = new Set(proofs.flatMap((proof) => proof.ids.flatMap(rowsOf)));

describe('the contract', () => {
  it('docs/contract.md is as it is generated', () => {
    expect(read(contractPage)).to.equal(makeContractPage());
  });

  it('has each row once', () => {
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).to.deep.equal([]);
  });

  it('has every decision from D1 on, in order', () => {
    const decisions = ids.filter((id) => /^D\d+$/.test(id));
    expect(decisions).to.deep.equal(decisions.map((_, index) => `D${index + 1}`));
    expect(decisions.length).to.be.at.least(97);
  });

  it('has sentences that fit into a table', () => {
    expect(rows.filter(({ sentence }) => !/^[^|]+\.$/.test(sentence)).map(({ id }) => id)).to.deep.equal([]);
  });

  it('every row is proved by a test, or follows with a folder that is not there yet', () => {
    expect(rows.filter(({ id, follows }) => !proved.has(id) && !follows).map(({ id }) => id)).to.deep.equal([]);
  });

  it('every id that a title begins with is a row', () => {
    const unknown = proofs.flatMap(({ path, ids: named }) =>
      named.filter((id) => rowsOf(id).length === 0).map((id) => `${path}: ${id}`),
    );
    expect(unknown).to.deep.equal([]);
  });

  it('no row waits for a folder that is there', () => {
    const built = rows.filter(({ follows }) => follows && files.some((path) => path.startsWith(`${follows}/`)));
    expect(built.map(({ id, follows }) => `${id}: ${follows}`)).to.deep.equal([]);
  });

  it('every decision that code names is a row', () => {
    const named = files
      .filter((path) => /^(?:src|test|docker)\/.*\.ts$|^[A-Z]+\.md$/.test(path))
      .flatMap((path) => [...read(path).matchAll(/\(D(\d+)\)/g)].map(([, number]) => [path, `D${number}`] as const));
    expect(named.filter(([, id]) => !ids.includes(id)).map((one) => one.join(': '))).to.deep.equal([]);
  });
});
