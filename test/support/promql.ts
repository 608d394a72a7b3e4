import { parser } from '@prometheus-io/lezer-promql';

export interface Query {
  /** Every selector, with its matchers. */
  readonly selectors: readonly Selector[];
  /** Labels by which series are grouped or matched. */
  readonly groupings: readonly string[];
  /** What Prometheus would not understand. */
  readonly errors: readonly string[];
}

interface Selector {
  readonly metric: string;
  readonly matchers: readonly { readonly label: string; readonly operator: string; readonly value: string }[];
}

/** Reads a query by the grammar that Prometheus publishes; variables of Grafana stand for a time. */
export function parseQuery(text: string): Query {
  const query = text.replaceAll(/\$__(?:rate_interval|interval|range)\b/g, '5m');
  const selectors: { metric: string; matchers: { label: string; operator: string; value: string }[] }[] = [];
  const groupings: string[] = [];
  const errors: string[] = [];
  let label = '';
  let operator = '';
  let isGrouping = false;
  parser.parse(query).iterate({
    enter: ({ name, type, from, to }) => {
      const found = query.slice(from, to);
      if (type.isError) errors.push(`${query.slice(Math.max(0, from - 20), to + 20)}`);
      else if (name === 'VectorSelector') selectors.push({ metric: '', matchers: [] });
      else if (name === 'Identifier' && selectors.at(-1)?.metric === '') selectors.at(-1)!.metric = found;
      else if (name === 'GroupingLabels') isGrouping = true;
      else if (name === 'LabelName' && isGrouping) groupings.push(found);
      else if (name === 'LabelName') label = found;
      else if (name === 'MatchOp') operator = found;
      else if (name === 'StringLiteral' && label !== '') {
        selectors.at(-1)?.matchers.push({ label, operator, value: found.slice(1, -1) });
        label = '';
      }
    },
    leave: ({ name }) => {
      if (name === 'GroupingLabels') isGrouping = false;
    },
  });
  return { selectors, groupings, errors };
}
