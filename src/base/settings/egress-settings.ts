import * as kind from './kinds.ts';

export const egressSettings = {
  TRAWL_EGRESS_PORTS: {
    kind: kind.ports,
    default: '80,443',
    text: 'Ports that are open on public addresses; a URL with another port ends as `address_not_allowed`.',
  },
  TRAWL_EGRESS_ALLOW: {
    kind: kind.exceptions,
    default: '',
    text: "Addresses and ports that callers may name although they are not public, such as the operator's own sources.",
  },
  TRAWL_EGRESS_DENY: {
    kind: kind.networks,
    default: '',
    text: 'Further addresses that are never reached, such as public ones of the cluster itself, or those of its own NAT64 that lead to private ones of IPv4, such as 2001:db8:64::10.0.0.0/104; wins over TRAWL_EGRESS_ALLOW. The whole prefix of a NAT64 would also refuse each name that DNS64 answers with it, which is each one of IPv4 alone. Those of the machine or pod of `egress`, and the /64 of each of IPv6, need no entry.',
  },
  TRAWL_DNS_SERVERS: {
    kind: kind.peers,
    default: '',
    absent: "the system's",
    text: 'DNS servers that `egress` asks for the names of callers.',
  },
} as const satisfies kind.SettingTable;
