/**
 * Links of an answer as DOM nodes. They open only http, https and mailto, never send a referrer,
 * and show their host. Images become links, so an answer cannot
 * load anything.
 *
 * @module links
 */

import { el, icon } from './dom.js';
import { t } from './texts.js';

/**
 * @param {string} raw an address from an answer
 * @returns {URL | null} null unless it is an absolute http, https or mailto address
 */
export function safeUrl(raw) {
  if (!/^(?:https?:\/\/|mailto:)/i.test(raw)) return null;
  try {
    const url = new URL(raw);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

/**
 * A link with a label; where the label does not name the host, the host follows it.
 *
 * @param {URL} url @param {Node[]} inside
 */
export function wordedLink(url, inside) {
  const link = anchor(url, inside);
  if (!saysWhere(link.textContent ?? '', url)) link.append(hostNote(url));
  return link;
}

/** @param {URL} url @param {string} alt the image's description */
export function imageLink(url, alt) {
  const link = anchor(url, [icon('image'), t('answer.image_link', { name: alt })]);
  link.append(hostNote(url));
  return link;
}

/** @param {URL} url @param {string} text the address as it was written */
export function plainLink(url, text) {
  const link = anchor(url, [text]);
  // `https://bank.example@evil.example` and look-alike letters disguise the target: show the real host.
  if (url.username || !text.toLowerCase().includes(url.host)) link.append(hostNote(url));
  return link;
}

/** @param {URL} url @param {(Node | string)[]} inside */
function anchor(url, inside) {
  return el('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer nofollow', dir: 'auto' }, ...inside);
}

/** @param {string} text @param {URL} url whether the text already names the link's host */
function saysWhere(text, url) {
  const bare = (/** @type {string} */ value) => value.trim().replace(/^mailto:/i, '').replace(/\/$/, '');
  if (url.username) return false;
  if (text.endsWith(`(${url.host})`)) return true;
  return [url.href, url.host, url.pathname && url.host + url.pathname].some((said) => said && bare(said) === bare(text));
}

/** @param {URL} url */
function hostNote(url) {
  const where = url.protocol === 'mailto:' ? url.pathname : url.host;
  return el('span', { class: 'host', dir: 'ltr' }, ` (${where})`);
}
