/**
 * What the page stores in the browser: token, chat id, theme, draft. Nothing here is
 * read from the address bar. outbox.js stores the messages waiting to be sent.
 *
 * @module settings
 */

import { t } from './texts.js';

const PREFIX = 'parlour.';

/** Replaces a storage that the browser refuses (private mode, blocked, full). */
const fallback = new Map();

/**
 * @param {string} key without the prefix
 * @param {Storage} [storage]
 * @returns {string | null}
 */
export function read(key, storage = localStorage) {
  if (fallback.has(key)) return fallback.get(key);
  try {
    return storage.getItem(PREFIX + key);
  } catch {
    return null;
  }
}

/**
 * @param {string} key without the prefix
 * @param {string | null} value null removes it
 * @param {Storage} [storage]
 */
export function write(key, value, storage = localStorage) {
  fallback.delete(key);
  try {
    if (value === null) storage.removeItem(PREFIX + key);
    else storage.setItem(PREFIX + key, value);
  } catch {
    fallback.set(key, value);
  }
}

/**
 * @template T
 * @param {string} key
 * @param {T} otherwise
 * @param {Storage} [storage]
 * @returns {T}
 */
export function readJson(key, otherwise, storage = localStorage) {
  try {
    return JSON.parse(read(key, storage) ?? 'null') ?? otherwise;
  } catch {
    return otherwise;
  }
}

/**
 * The audio processing requested from the browser; all on unless `parlour.audio` says otherwise
 * (a JSON object such as `{"echoCancellation": false}`).
 *
 * @returns {MediaTrackConstraints}
 */
export function audioConstraints() {
  const kept = readJson('audio', /** @type {Record<string, unknown>} */ ({}));
  const on = (/** @type {string} */ name) => kept[name] !== false;
  return {
    echoCancellation: on('echoCancellation'),
    noiseSuppression: on('noiseSuppression'),
    autoGainControl: on('autoGainControl'),
  };
}

/** @returns {'light' | 'dark'} the theme shown now */
export function currentTheme() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === 'light' || chosen === 'dark') return chosen;
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

/** @param {string} theme `light`, `dark`, or empty for the system's */
export function chooseTheme(theme) {
  write('theme', theme || null);
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  document.dispatchEvent(new Event('themechosen'));
}

/**
 * Wires the theme button and updates its label and the browser's own colours.
 *
 * @param {HTMLButtonElement} button
 */
export function wireTheme(button) {
  const show = () => {
    const theme = currentTheme();
    const label = theme === 'dark' ? t('theme.to_light') : t('theme.to_dark');
    button.setAttribute('aria-label', label);
    button.title = label;
    button.dataset.shown = theme;
    for (const meta of document.querySelectorAll('meta[name="theme-color"]')) {
      meta.setAttribute('content', theme === 'dark' ? '#111514' : '#f7f8f7');
    }
  };
  button.addEventListener('click', () => {
    const next = currentTheme() === 'dark' ? 'light' : 'dark';
    chooseTheme(next);
  });
  document.addEventListener('themechosen', show);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', show);
  window.addEventListener('storage', (event) => {
    if (event.key !== `${PREFIX}theme` || !event.newValue) return;
    document.documentElement.dataset.theme = event.newValue;
    show();
  });
  show();
}
