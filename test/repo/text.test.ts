import { expect } from 'chai';
import { settings } from '../../src/base/settings/settings.ts';
import { findPlaces } from '../support/tree.ts';
import { texts } from '../support/tree-files.ts';

const known = new Set<string>(
  settings.flatMap(({ name, ...rest }) => ('secret' in rest ? [name, `${name}_FILE`] : [name])),
);
// The patterns are written so that this file does not match them.
const machinePath = /(?<![\w.*}~-])\/(?:(?:work|root)\b|(?:home|Users)\/\w)[\w./-]*/g;
const registry =
  /\b(?:registry\.(?:npmjs|yarnpkg)|(?:files\.)?pythonhosted\.|pypi\.|proxy\.golang|sum\.golang|deb\.debian)[\w.]*/g;
const unfinished = /\b(?:[T]ODO|[F]IXME|[X]XX)\b/g;

describe('the text of the tree', () => {
  it('names no setting that base/settings does not know', () => {
    const named = findPlaces(/\bTRAWL_[A-Z0-9_]*[A-Z0-9]/g, texts);
    expect(named.filter((place) => !known.has(place.split(' ').at(-1)!))).to.deep.equal([]);
  });

  it('names no path of a machine', () => {
    expect(findPlaces(machinePath, texts)).to.deep.equal([]);
  });

  it('names no registry', () => {
    expect(findPlaces(registry, texts)).to.deep.equal([]);
  });

  it('leaves nothing unfinished', () => {
    expect(findPlaces(unfinished, texts)).to.deep.equal([]);
  });
});
