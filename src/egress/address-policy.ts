import type { EgressVerdict } from '../base/egress-verdict.ts';
import type { AddressException, Network } from '../base/settings/kinds.ts';
import {
  type IpAddress,
  isInRange,
  isLocalName,
  isPublicAddress,
  networkOf,
  readAddress,
  readLiteral,
  readRange,
  topLabel,
} from '../model/public-address.ts';

export type Judgement = Extract<
  EgressVerdict,
  'open' | 'refused_name' | 'refused_address' | 'refused_port' | 'failed_dns'
>;

/** Judgement of a host and port before DNS: a refusal, addresses to connect to, or a name to resolve and judge. */
type HostJudgement =
  | { readonly verdict: Exclude<Judgement, 'open'> }
  | { readonly verdict: 'open'; readonly addresses: readonly string[] }
  | { readonly verdict: 'resolve' };

export interface PolicyOptions {
  readonly ports: readonly number[];
  /** Addresses that are open on their port although they are not public, whatever their name. */
  readonly allow: readonly AddressException[];
  readonly deny: readonly Network[];
  /** The addresses of this machine: public or not, only an exception opens them, and the /64 of one of IPv6. */
  readonly ownAddresses: () => readonly string[];
}

export type Policy = ReturnType<typeof makePolicy>;

/** Order in which one verdict is chosen when addresses have several. */
const bySeverity: readonly Judgement[] = ['refused_name', 'refused_address', 'refused_port'];

/** A localhost name means this machine, whatever a resolver says (RFC 6761). */
const loopbacks = ['127.0.0.1', '::1'];

export function makePolicy({ ports, allow, deny, ownAddresses }: PolicyOptions) {
  const denied = deny.map(readRange);
  const excepted = allow.map((exception) => ({ range: readRange(exception), port: exception.port }));
  const exceptedOn = (port: number) => excepted.filter((one) => one.port === null || one.port === port);

  /**
   * Reads the addresses of this machine once, and only if there is a public address to compare with. Every machine of an IPv6 network has an
   * address that looks public: a firewall keeps the Internet from the neighbours of this one, but not this one.
   */
  const compareOwn = () => {
    let own: (string | null)[] | undefined;
    return (address: IpAddress) => {
      own ??= ownAddresses().map((text) => {
        const one = readAddress(text);
        return one && networkOf(one);
      });
      return own.includes(networkOf(address));
    };
  };
  const judge = (local: boolean, text: string, port: number, isOwn = compareOwn()): Judgement => {
    const address = readAddress(text);
    if (address === null) return 'refused_address';
    if (denied.some((range) => isInRange(range, address))) return 'refused_address';
    if (exceptedOn(port).some(({ range }) => isInRange(range, address))) return 'open';
    if (local) return 'refused_name';
    if (!isPublicAddress(address) || isOwn(address)) return 'refused_address';
    return ports.includes(port) ? 'open' : 'refused_port';
  };

  return {
    /** Judges a host as URL writes it, before anything is resolved. */
    judgeHost: (host: string, port: number): HostJudgement => {
      const literal = readLiteral(host);
      if (literal !== null) {
        const verdict = judge(false, literal, port);
        return verdict === 'open' ? { verdict, addresses: [literal] } : { verdict };
      }
      if (topLabel(host) === 'localhost') {
        const addresses = loopbacks.filter((address) => judge(true, address, port) === 'open');
        return addresses.length > 0 ? { verdict: 'open', addresses } : { verdict: 'refused_name' };
      }
      // Nothing is asked about a name that no answer could open.
      if (exceptedOn(port).length > 0) return { verdict: 'resolve' };
      if (isLocalName(host)) return { verdict: 'refused_name' };
      return { verdict: ports.includes(port) ? 'resolve' : 'refused_port' };
    },
    /** Judges every address that a name stands for: one bad address refuses all of them, and a local name without any is refused too. */
    judgeAddresses: (name: string, addresses: readonly string[], port: number): Judgement => {
      const local = isLocalName(name);
      if (addresses.length === 0) return local ? 'refused_name' : 'failed_dns';
      const isOwn = compareOwn();
      const judged = addresses.map((address) => judge(local, address, port, isOwn));
      return bySeverity.find((verdict) => judged.includes(verdict)) ?? 'open';
    },
  };
}
