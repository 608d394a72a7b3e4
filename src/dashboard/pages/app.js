import { AccountPage } from '/account.js';
import { onOld, readAgain } from '/answers.js';
import { Audit } from '/audit.js';
import { Billing } from '/billing.js';
import { Download } from '/download.js';
import { Action, html, Notice, useEffect, useRef, useState } from '/elements.js';
import { Job, Jobs } from '/jobs.js';
import { Keys } from '/keys.js';
import { Overview } from '/overview.js';
import { People } from '/people.js';
import { Requests } from '/requests.js';
import { ask, onAccountChanged, onReached, onSignedOut, readSession } from '/server.js';
import { OperatorChoice, Service } from '/service.js';
import { SignIn } from '/sign-in.js';
import { render } from '/vendor/preact.js';
import { Webhooks } from '/webhooks.js';

const views = [
  ['/', 'Overview', Overview],
  ['/download', 'Download', Download],
  ['/jobs', 'Jobs', Jobs],
  ['/keys', 'Keys', Keys],
  ['/requests', 'Requests', Requests],
  ['/billing', 'Billing', Billing],
  ['/webhooks', 'Webhooks', Webhooks],
  ['/people', 'People', People],
  ['/audit', 'Audit log', Audit],
  ['/service', 'Service', Service],
  ['/account', 'Your sign-in', AccountPage],
];

const maxDrawMs = 3_000;
let turn = 0;

/** Scrolls to where a view was left, as soon as it is drawn that far; nowhere once another view was asked for or its reader moves. */
function comeBackTo(place) {
  const own = ++turn;
  const end = performance.now() + maxDrawMs;
  const look = () => {
    if (own !== turn || performance.now() > end) return;
    if (document.documentElement.scrollHeight - innerHeight >= place) scrollTo(0, place);
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

/** Follows links of this page without loading it again; the back button works. */
function useAddress() {
  const [address, setAddress] = useState(location.pathname + location.search);
  const show = () => setAddress(location.pathname + location.search);
  const goBack = ({ state }) => {
    show();
    // A link within the page has none.
    if (!state) return;
    // It may be left next without `go`, and then at another place.
    history.replaceState(null, '');
    comeBackTo(state.place);
  };
  const stay = () => turn++;
  const go = (to) => {
    // The link of the view that is shown asks for it as it is now.
    if (to === location.pathname + location.search) return readAgain();
    turn++;
    history.replaceState({ place: scrollY }, '');
    history.pushState(null, '', to);
    return show();
  };
  useEffect(() => {
    const follow = (event) => {
      const link = event.target.closest?.('a[href^="/"]');
      if (
        !link ||
        link.target ||
        link.hasAttribute('download') ||
        link.hasAttribute('data-leaves') ||
        event.metaKey ||
        event.ctrlKey ||
        event.shiftKey
      )
        return;
      event.preventDefault();
      go(link.getAttribute('href'));
      document.getElementById('main')?.focus();
    };
    const listeners = { popstate: goBack, click: follow, wheel: stay, touchmove: stay, keydown: stay };
    for (const [type, listener] of Object.entries(listeners)) window.addEventListener(type, listener);
    return () => {
      for (const [type, listener] of Object.entries(listeners)) window.removeEventListener(type, listener);
    };
  }, []);
  return [address, go, setAddress];
}

function App() {
  const [session, setSession] = useState(undefined);
  const [error, setError] = useState(null);
  const [isOver, setOver] = useState(false);
  const [isReached, setReached] = useState(true);
  const [isOld, setOld] = useState(false);
  const [isMoved, setMoved] = useState(false);
  const [address, go, setAddress] = useAddress();
  const shown = useRef(null);
  const load = async () => {
    try {
      const found = await readSession();
      if (found && shown.current && found.account_id !== shown.current.account_id) setMoved(true);
      // A page that somebody works at stays.
      setOver(found === null && shown.current !== null);
      shown.current = found ?? shown.current;
      setSession(shown.current);
      setError(null);
      return found;
    } catch (failed) {
      setError(failed);
      return undefined;
    }
  };
  useEffect(() => {
    onSignedOut(() => setOver(true));
    onReached(setReached);
    onOld(setOld);
    onAccountChanged(() => void load());
    // A page that was away asks again as soon as the connection is back.
    const again = () => void load();
    const lose = () => setReached(false);
    // A browser that goes back shows the page as it was left: its person may have signed out since.
    const comeBack = async ({ persisted }) => {
      const before = shown.current?.user.email;
      const found = persisted ? await load() : undefined;
      if (found !== undefined && found?.user.email !== before) location.reload();
    };
    window.addEventListener('pageshow', comeBack);
    window.addEventListener('online', again);
    window.addEventListener('offline', lose);
    again();
    return () => {
      window.removeEventListener('pageshow', comeBack);
      window.removeEventListener('online', again);
      window.removeEventListener('offline', lose);
    };
  }, []);
  // The views may be old after the server was away.
  useEffect(() => {
    if (isReached) readAgain();
  }, [isReached]);
  const again = () => load().then(readAgain);
  useTick();
  if (error && !session)
    return html`<main class="alone"><${Notice}>${error.message}<//><button onClick=${load}>Try again</button></main>`;
  if (session === undefined) return html`<p class="alone late">Loading …</p>`;
  const path = address.split('?')[0];
  if (session === null || path === '/sign-in') {
    return html`<${SignIn} onDone=${async () => {
      await load();
      if (path !== '/sign-in') return;
      // Going back leads past the sign-in.
      history.replaceState(null, '', '/');
      setAddress('/');
    }} />`;
  }
  return html`<${Frame} ...${{ session, path, address, go, load, again, isOld: isOld || !isReached, isMoved }} />
    ${isOver && html`<${SignIn} isOver=${true} onDone=${again} onClose=${() => setOver(false)} />`}`;
}

/** Draws the page anew twice a minute, because it tells how long ago things were. */
function useTick() {
  const [, setTicks] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTicks((ticks) => ticks + 1), 30_000);
    return () => clearInterval(timer);
  }, []);
}

function Frame({ session, path, address, go, load, again, isOld, isMoved }) {
  const [failed, setFailed] = useState(null);
  const [, title, View] = views.find(([to]) => to === path) ?? [];
  const jobId = /^\/jobs\/([\w-]+)$/.exec(path)?.[1];
  useEffect(() => {
    document.title = `${title ?? (jobId ? 'Job' : 'Not found')} · trawl`;
  }, [title, jobId]);
  const may = { change: ['owner', 'member'].includes(session.role), own: session.role === 'owner' };
  const hidden = session.user.operator ? [] : may.own ? [Service] : [Service, Audit, People];
  const seen = views.filter(([, , page]) => !hidden.includes(page));
  const choose = async ({ target }) => {
    setFailed(null);
    try {
      await ask('POST', '/api/session/account', { account: target.value });
      location.assign('/');
    } catch (error) {
      setFailed(error);
      target.value = session.account?.slug ?? '';
    }
  };
  // A key that chooses in a closed list would change the account at once: it opens the list in its place.
  const openList = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !/^(.|Arrow\w+|Page\w+|Home|End)$/.test(event.key)) return;
    event.preventDefault();
    event.target.showPicker?.();
  };
  const leave = async () => {
    await ask('POST', '/api/sign-out', {}).catch((error) => {
      // Its session has ended before.
      if (error.status !== 401) throw error;
    });
    location.assign('/sign-in');
  };
  const others = session.accounts.length > 1;
  const isOwn = session.accounts.some(({ slug }) => slug === session.account?.slug);
  // Operators look at accounts that are not theirs.
  const shown = isOwn
    ? session.accounts
    : [session.account ?? { slug: '', name: 'No account chosen' }, ...session.accounts];
  return html`<a class="skip" href="#main">Skip to content</a>
    <div class="frame">
      <header class="side">
        <div class="brand"><img src="/icon.svg" alt="" />trawl</div>
        <nav aria-label="Pages">
          <ul>
            ${seen.map(
              ([to, name]) =>
                html`<li><a href=${to} aria-current=${to === path || (to === '/jobs' && jobId) ? 'page' : undefined}>${name}</a></li>`,
            )}
          </ul>
        </nav>
        <div class="who">
          ${
            others
              ? html`<label>Account
                <select onChange=${choose} onKeyDown=${openList} value=${session.account?.slug ?? ''}>
                  ${shown.map(({ slug, name }) => html`<option value=${slug}>${name}</option>`)}
                </select></label
              >`
              : html`<span><b>${session.account?.name ?? 'No account chosen'}</b></span>`
          }
          <span title=${session.user.email}><${Address} of=${session.user.email} /><br />${session.role ?? 'operator'}</span>
          ${failed && html`<span class="bad" role="alert">${failed.message}</span>`}
          <${Action} run=${leave}>Sign out<//>
        </div>
      </header>
      <main id="main" tabindex="-1">
        ${
          isOld &&
          html`<${Notice} kind="warn">The server cannot be reached, or cannot answer now: what you see may be old. What you have typed stays. <button type="button" onClick=${again}>Try again</button><//>`
        }
        ${
          isMoved &&
          html`<${Notice} kind="warn">Your session is in another account now: this page shows ${session.account?.name ?? 'none'}. What you had begun before was not sent.<//>`
        }
        ${session.user.operator && html`<${OperatorChoice} session=${session} />`}
        ${
          !session.user.has_password &&
          !session.user.has_passkey &&
          !session.user.has_identity &&
          path !== '/account' &&
          html`<${Notice} kind="warn">You have no password or passkey yet. <a href="/account">Set one</a> to sign in without a link.<//>`
        }
        <${Shown} ...${{ View, title, jobId, session, address, go, load, may }} />
      </main>
    </div>`;
}

function Shown({ View, title, jobId, session, address, go, load, may }) {
  if (!View && !jobId) return html`<h1>Not found</h1><p><a href="/">To the overview</a></p>`;
  // Operators have no account before they choose one.
  if (!session.account && ![Service, AccountPage].includes(View))
    return html`<h1>${title ?? 'Job'}</h1><p class="lead">Choose an account to look at.</p>`;
  return jobId
    ? html`<${Job} key=${session.account_id} id=${jobId} may=${may} go=${go} />`
    : html`<${View} key=${session.account_id} ...${{ session, address, go, load, may }} />`;
}

/** An e-mail address, which breaks before its host when it is too long for one line. */
function Address({ of }) {
  const at = of.lastIndexOf('@');
  return html`${of.slice(0, at)}<wbr />${of.slice(at)}`;
}

render(html`<${App} />`, document.getElementById('app'));
