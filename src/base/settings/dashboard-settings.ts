import * as kind from './kinds.ts';

/** Dashboard and payments, which are not there yet: the values are checked and not used. */
export const dashboardSettings = [
  { name: 'TRAWL_DASHBOARD_PORT', kind: kind.port, default: '8081', text: 'Port of the dashboard (not there yet).' },
  {
    name: 'TRAWL_DASHBOARD_URL',
    kind: kind.linkStart,
    default: null,
    absent: 'from host and port',
    text: 'URL at which owners reach the dashboard (not there yet).',
  },
  {
    name: 'TRAWL_STRIPE_KEY',
    kind: kind.text,
    default: null,
    secret: true,
    text: 'API key for payments with Stripe (not there yet).',
  },
  {
    name: 'TRAWL_STRIPE_URL',
    kind: kind.linkStart,
    default: null,
    absent: "Stripe's own",
    text: 'Server that stands in for Stripe in tests (not there yet).',
  },
  {
    name: 'TRAWL_SMTP_URL',
    kind: kind.mailUrl,
    default: null,
    secret: true,
    text: 'Mail server for sign-in and receipts (not there yet).',
  },
  { name: 'TRAWL_MAIL_FROM', kind: kind.mailAddress, default: null, text: 'Sender of mail (not there yet).' },
  {
    name: 'TRAWL_OIDC_ISSUER',
    kind: kind.webUrl,
    default: null,
    text: 'OpenID Connect issuer for sign-in to the dashboard (not there yet).',
  },
  {
    name: 'TRAWL_OIDC_CLIENT_ID',
    kind: kind.text,
    default: null,
    text: 'Client id of the dashboard at that issuer (not there yet).',
  },
  {
    name: 'TRAWL_OIDC_CLIENT_SECRET',
    kind: kind.text,
    default: null,
    secret: true,
    text: 'Client secret of the dashboard at that issuer (not there yet).',
  },
] as const satisfies readonly kind.Setting[];
