import * as kind from './kinds.ts';

/** Payments, mail and the dashboard. */
export const dashboardSettings = {
  TRAWL_DASHBOARD_PORT: {
    kind: kind.orWord<number | null>('none', () => null, kind.port),
    default: '8081',
    text: 'Port of the dashboard; with `none` role `api` opens none, because role `dashboard` runs apart.',
  },
  TRAWL_DASHBOARD_URL: {
    kind: kind.serverUrl,
    absent: 'from host and port',
    text: 'URL at which people reach the dashboard: links in mails and sign-in links begin with it, and requests from other origins are refused. With https, cookies are sent over https alone. The dashboard has a host, or a port, to itself.',
  },
  TRAWL_STRIPE_KEY: {
    kind: kind.text,
    secret: true,
    followed: true,
    text: 'API key for payments with Stripe; without it nothing can be bought.',
  },
  TRAWL_STRIPE_URL: {
    kind: kind.linkStart,
    absent: "Stripe's own",
    text: 'Server that stands in for Stripe in tests.',
  },
  TRAWL_STRIPE_WEBHOOK_SECRET: {
    kind: kind.text,
    secret: true,
    followed: true,
    text: 'Secret with which Stripe signs its events; without it packs cannot be bought.',
  },
  TRAWL_SELLER_NAME: { kind: kind.text, text: 'Name of the seller on invoices.' },
  TRAWL_SELLER_ADDRESS: { kind: kind.text, text: 'Address of the seller on invoices.' },
  TRAWL_SELLER_TAX: {
    kind: kind.text,
    text: 'Text about tax on invoices, such as a tax number and the rate that the prices contain.',
  },
  TRAWL_SMTP_URL: {
    kind: kind.mailUrl,
    secret: true,
    followed: true,
    text: 'Mail server for invoices and alerts; without it mails wait for a week and are dropped.',
  },
  TRAWL_MAIL_FROM: { kind: kind.mailAddress, text: 'Sender of mail.' },
  TRAWL_OIDC_ISSUER: {
    kind: kind.webUrl,
    text: 'OpenID Connect issuer for the sign-in to the dashboard. People who were invited get in with an e-mail address that it has verified.',
  },
  TRAWL_OIDC_CLIENT_ID: {
    kind: kind.text,
    text: 'Client id of the dashboard at that issuer; its redirect URI is TRAWL_DASHBOARD_URL/api/sign-in/openid/back.',
  },
  TRAWL_OIDC_CLIENT_SECRET: {
    kind: kind.text,
    secret: true,
    followed: true,
    text: 'Client secret of the dashboard at that issuer; without one the client is a public one.',
  },
} as const satisfies kind.SettingTable;
