/**
 * Markdown inside one paragraph, as DOM nodes: emphasis, code, links. Raw HTML stays text.
 *
 * @module inline
 */

import { el } from './dom.js';
import { imageLink, plainLink, safeUrl, wordedLink } from './links.js';
import { t } from './texts.js';

/**
 * @typedef {object} Token
 * @property {Node} [node] a finished node
 * @property {string} [mark] a run of emphasis marks that may still pair up
 * @property {number} [count]
 * @property {boolean} [opens]
 * @property {boolean} [closes]
 */

const PUNCTUATION = /[\p{P}\p{S}]/u;
const ESCAPABLE = /[!-/:-@[-`{-~]/;
const BARE_LINK = /https?:\/\/[^\s<>"'`\\]{1,2000}/iy;
const ANGLE_LINK = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000}|[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8})>/iy;
const LINE_BREAK_TAG = /<br ?\/?>/iy;
const LONGEST_LINK_TEXT = 1000;
const MOST_BRACKETS = 300;
const MOST_DELIMITERS = 2000;

/**
 * @param {string} text
 * @param {{ links?: boolean }} [options] `links: false` inside the text of a link
 * @returns {Node[]}
 */
export function renderInline(text, { links = true } = {}) {
  if (isHostile(text)) return [document.createTextNode(text)];
  /** @type {Token[]} */
  const tokens = [];
  let plain = '';
  const flush = () => {
    if (plain) tokens.push({ node: document.createTextNode(plain) });
    plain = '';
  };
  for (let at = 0; at < text.length; ) {
    const found = special(text, at, links);
    if (!found) {
      plain += text[at];
      at += 1;
    } else if (found.text !== undefined) {
      plain += found.text;
      at = found.end;
    } else {
      flush();
      tokens.push(/** @type {Token} */ (found.token));
      at = found.end;
    }
  }
  flush();
  return pairMarks(tokens);
}

/**
 * Whether rendering `text` would take far longer than reading it, or nest its marks thousands deep. The gateway
 * renders the same texts without their marks.
 *
 * @param {string} text
 */
function isHostile(text) {
  if (text.length < MOST_BRACKETS) return false;
  let brackets = 0;
  let delimiters = 0;
  for (const sign of text) {
    if (sign === '[') brackets += 1;
    else if (sign === '*' || sign === '_' || sign === '~') delimiters += 1;
  }
  return brackets > MOST_BRACKETS || delimiters > MOST_DELIMITERS;
}

/**
 * The markup that starts at `at`, if any.
 *
 * @param {string} text @param {number} at @param {boolean} links
 * @returns {{ end: number, token?: Token, text?: string } | null}
 */
function special(text, at, links) {
  switch (text[at]) {
    case '\\':
      if (text[at + 1] === '\n') return { end: at + 2, token: { node: el('br') } };
      return ESCAPABLE.test(text[at + 1] ?? '') ? { end: at + 2, text: text[at + 1] } : null;
    case '\n':
      return { end: at + 1, token: { node: el('br') } };
    case '`':
      return codeSpan(text, at);
    case '*':
    case '_':
    case '~':
      return marks(text, at);
    case '!':
      return text[at + 1] === '[' ? bracketed(text, at + 1, links, true) : null;
    case '[':
      return links ? bracketed(text, at, links, false) : null;
    case '<':
      return angle(text, at, links);
    case 'h':
    case 'H':
      return links ? bareLink(text, at) : null;
    default:
      return null;
  }
}

/** @param {string} text @param {number} at */
function codeSpan(text, at) {
  let width = 1;
  while (text[at + width] === '`') width += 1;
  const fence = '`'.repeat(width);
  for (let from = at + width; ; ) {
    const close = text.indexOf(fence, from);
    if (close < 0) return { end: at + width, text: fence };
    let end = close + width;
    if (text[end] !== '`') {
      const inside = text.slice(at + width, close).replaceAll('\n', ' ');
      const padded = inside.startsWith(' ') && inside.endsWith(' ') && inside.trim() !== '';
      const trimmed = padded ? inside.slice(1, -1) : inside;
      return { end, token: { node: el('code', { dir: 'ltr' }, trimmed) } };
    }
    while (text[end] === '`') end += 1;
    from = end;
  }
}

/** @param {string} text @param {number} at a run of `*`, `_` or `~` */
function marks(text, at) {
  const mark = text[at];
  let end = at;
  while (text[end] === mark) end += 1;
  const count = end - at;
  if (mark === '~' && count !== 2) return { end, text: mark.repeat(count) };
  const before = text[at - 1] ?? ' ';
  const after = text[end] ?? ' ';
  const left = flanks(after, before);
  const right = flanks(before, after);
  // `2*3*4` is arithmetic; standard Markdown would set the 3 in italics.
  const between = mark === '*' && count === 1 && /[A-Za-z0-9]/.test(before) && /[A-Za-z0-9]/.test(after);
  if (between) return { end, text: mark };
  const inWord = mark === '_' && left && right;
  const opens = left && (!inWord || PUNCTUATION.test(before));
  const closes = right && (!inWord || PUNCTUATION.test(after));
  return { end, token: { mark, count, opens, closes } };
}

/** @param {string} inner @param {string} outer whether a mark between them belongs to `inner` */
function flanks(inner, outer) {
  if (/\s/.test(inner)) return false;
  return !PUNCTUATION.test(inner) || /\s/.test(outer) || PUNCTUATION.test(outer);
}

/**
 * `[text](address)` and `![alt](address)`.
 *
 * @param {string} text @param {number} open where `[` is @param {boolean} links @param {boolean} image
 */
function bracketed(text, open, links, image) {
  const close = closing(text, open);
  if (close < 0 || text[close + 1] !== '(') return null;
  const target = destination(text, close + 2);
  if (!target) return null;
  const label = text.slice(open + 1, close);
  const url = safeUrl(target.address);
  if (image) {
    const alt = label || t('answer.image');
    if (!url || !links) return { end: target.end, text: alt };
    return { end: target.end, token: { node: imageLink(url, alt) } };
  }
  const inside = renderInline(label, { links: false });
  if (!url) return { end: target.end, token: { node: el('span', {}, ...inside) } };
  return { end: target.end, token: { node: wordedLink(url, inside) } };
}

/** @param {string} text @param {number} open @returns {number} the `]` of this `[`, or -1 */
function closing(text, open) {
  let depth = 0;
  const last = Math.min(text.length, open + LONGEST_LINK_TEXT);
  for (let at = open; at < last; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '[') depth += 1;
    else if (text[at] === ']') {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return -1;
}

/** @param {string} text @param {number} from just after `(` @returns {{ address: string, end: number } | null} */
function destination(text, from) {
  const pattern = /[ \n]{0,9}(?:<([^<>\n]{0,2000})>|([^\s()<]{0,2000}(?:\([^\s()]{0,500}\)[^\s()]{0,500}){0,9}))(?:[ \n]{1,9}(?:"[^"]{0,500}"|'[^']{0,500}'))?[ \n]{0,9}\)/y;
  pattern.lastIndex = from;
  const match = pattern.exec(text);
  return match ? { address: match[1] ?? match[2] ?? '', end: pattern.lastIndex } : null;
}

/** @param {string} text @param {number} at @param {boolean} links */
function angle(text, at, links) {
  LINE_BREAK_TAG.lastIndex = at;
  if (LINE_BREAK_TAG.test(text)) return { end: LINE_BREAK_TAG.lastIndex, token: { node: el('br') } };
  ANGLE_LINK.lastIndex = at;
  const match = links ? ANGLE_LINK.exec(text) : null;
  const url = match && safeUrl(match[1].includes(':') ? match[1] : `mailto:${match[1]}`);
  if (!match || !url) return null;
  return { end: ANGLE_LINK.lastIndex, token: { node: plainLink(url, match[1]) } };
}

/** @param {string} text @param {number} at */
function bareLink(text, at) {
  if (/\w/.test(text[at - 1] ?? '')) return null;
  BARE_LINK.lastIndex = at;
  const match = BARE_LINK.exec(text);
  if (!match) return null;
  let address = match[0].replace(/[.,;:!?*_~\]]+$/, '');
  while (address.endsWith(')') && address.split(')').length > address.split('(').length) address = address.slice(0, -1);
  const url = safeUrl(address);
  return url ? { end: at + address.length, token: { node: plainLink(url, address) } } : null;
}

/**
 * Pairs emphasis marks, nearest opener first; the finished nodes.
 *
 * @param {Token[]} tokens
 * @returns {Node[]}
 */
function pairMarks(tokens) {
  /** @type {Token[]} */
  const done = [];
  for (const token of tokens) {
    while (token.closes && token.count) {
      const open = done.findLastIndex((other) => other.mark === token.mark && other.opens && other.count);
      if (open < 0) break;
      const opener = done[open];
      const width = Math.min(2, opener.count ?? 0, token.count);
      const tag = token.mark === '~' ? 's' : width === 2 ? 'strong' : 'em';
      const inside = done.splice(open + 1).map(toNode);
      done.push({ node: el(tag, {}, ...inside) });
      opener.count = (opener.count ?? 0) - width;
      token.count -= width;
    }
    if (token.node || token.count) done.push(token);
  }
  return done.map(toNode);
}

/** @param {Token} token */
function toNode(token) {
  return token.node ?? document.createTextNode((token.mark ?? '').repeat(token.count ?? 0));
}
