import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';

/** Claims of a person at the provider. */
export interface Claims {
  readonly email: string;
  readonly email_verified: boolean;
}

/** A real OpenID Connect provider in memory, whose sign-in page answers by itself. */
export interface IdentityProvider {
  readonly issuer: string;
  readonly clientId: string;
  /** Secrets of the client that are valid now, at first one. */
  readonly secrets: Set<string>;
  /** Secrets that the provider has refused. */
  readonly refusedSecrets: readonly string[];
  /** Allows this address to be returned to. */
  open(redirectUri: string, people: Readonly<Record<string, Claims>>): void;
  /** Chooses who signs in next. */
  become(sub: string): void;
  stop(): Promise<void>;
}

export async function startIdentityProvider(): Promise<IdentityProvider> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const [clientId, first] = ['trawl', 'secret-of-the-tests'];
  const [secrets, refusedSecrets]: [Set<string>, string[]] = [new Set([first]), []];
  let who = '';
  return {
    issuer,
    clientId,
    secrets,
    refusedSecrets,
    become: (sub) => {
      who = sub;
    },
    open(redirectUri, people) {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const provider = new Provider(issuer, {
        clients: [
          {
            ...{ client_id: clientId, client_secret: first, redirect_uris: [redirectUri], response_types: ['code'] },
            ...{ grant_types: ['authorization_code'], id_token_signed_response_alg: 'ES256' },
          },
        ],
        jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'test', use: 'sig', alg: 'ES256' } as never] },
        cookies: { keys: ['test'] },
        pkce: { required: () => true },
        features: { devInteractions: { enabled: false } },
        claims: { openid: ['sub'], email: ['email', 'email_verified'] },
        findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ sub, ...people[sub] }) }),
        interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
        ttl: { Interaction: 600, Session: 600, Grant: 600, AccessToken: 600, IdToken: 600 },
      });
      // By itself this provider lets a client have one secret, and others two for a while.
      provider.Client.prototype.compareClientSecret = (given) => {
        if (!secrets.has(given)) refusedSecrets.push(given);
        return secrets.has(given);
      };
      const answer = provider.callback();
      server.on('request', async (req, res) => {
        if (!req.url?.startsWith('/interaction/')) return answer(req, res);
        const { prompt, params, session, grantId } = await provider.interactionDetails(req, res);
        if (prompt.name === 'login') return provider.interactionFinished(req, res, { login: { accountId: who } });
        const known = grantId === undefined ? undefined : await provider.Grant.find(grantId);
        const grant =
          known ?? new provider.Grant({ accountId: session!.accountId, clientId: String(params.client_id) });
        grant.addOIDCScope(String(params.scope));
        return provider.interactionFinished(req, res, { consent: { grantId: await grant.save() } });
      });
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
