import { ask } from '/server.js';
import { useCallback, useEffect, useRef, useState } from '/vendor/preact.js';

/** Functions that read what the views show, those that could not do so the last time, and those of them whose views show an earlier answer. */
const [readings, failing, old] = [new Set(), new Set(), new Set()];
const againMs = 5_000;
let oldChanged = () => {};
let timer = null;

/** Called with whether something that is shown could not be read again. */
export function onOld(listener) {
  oldChanged = listener;
}

function mark(reload, isFailing, isShown) {
  if (isFailing) failing.add(reload);
  else failing.delete(reload);
  if (isFailing && isShown) old.add(reload);
  else old.delete(reload);
  oldChanged(old.size > 0);
  if (failing.size > 0 && timer === null) timer = setTimeout(tryAgain, againMs);
}

function tryAgain() {
  timer = null;
  for (const reload of failing) void reload();
}

/** Reads all that is shown again. */
export function readAgain() {
  for (const reload of readings) void reload();
}

/** Reads what a view shows; `reload` reads it again, and `change` does so after a request that changes it. */
export function useAnswer(path) {
  const [state, setState] = useState({ path, json: null, error: null });
  const turns = useRef({});
  if (turns.current.path !== path) turns.current = { path, asked: 0, shown: 0, json: null };
  const reload = useCallback(async () => {
    const own = turns.current;
    const turn = ++own.asked;
    const [json, error] = await ask('GET', path).then(
      (found) => [found, null],
      (failed) => [null, failed],
    );
    // The page has asked for something else since, or shows a later answer.
    if (own !== turns.current || turn < own.shown) return;
    own.shown = turn;
    own.json = json ?? own.json;
    setState({ path, json: own.json, error });
    const isFailing = error !== null && (error.status === 0 || error.status >= 500);
    if (readings.has(reload)) mark(reload, isFailing, own.json !== null);
  }, [path]);
  useEffect(() => {
    readings.add(reload);
    void reload();
    return () => {
      readings.delete(reload);
      mark(reload, false, false);
    };
  }, [reload]);
  const change = async (...request) => {
    await ask(...request);
    await reload();
  };
  const isCurrent = state.path === path;
  return { json: isCurrent ? state.json : null, error: isCurrent ? state.error : null, reload, change };
}

/** Reads the page of a list that an address names: what was chosen in it, and where the page begins. */
export function usePage(path, address, names) {
  const given = new URLSearchParams(address.split('?')[1] ?? '');
  const chosen = Object.fromEntries(names.flatMap((name) => (given.get(name) ? [[name, given.get(name)]] : [])));
  const cursor = given.get('cursor');
  const answer = useAnswer(`${path}?${new URLSearchParams({ ...chosen, ...(cursor && { cursor }) })}`);
  return { ...answer, chosen, cursor };
}

/** Reads what moves again and again, each time so long after the last answer. */
export function useRepeat(isOn, reload, pauseMs) {
  useEffect(() => {
    if (!isOn) return;
    let timer;
    let isGone = false;
    const wait = () => {
      if (!isGone) timer = setTimeout(() => void reload().then(wait), pauseMs);
    };
    wait();
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [isOn, reload, pauseMs]);
}
