/**
 * Markdown blocks as DOM nodes, for answers in progress: paragraphs, headings,
 * lists, quotes, tables, code. A growing answer is rendered again block by block, and unchanged blocks
 * keep their nodes, so a reader's selection survives. Raw HTML is text; inline.js renders the
 * content of a line. finished.js renders finished answers from the gateway's HTML.
 *
 * @module markdown
 */

import { codeBlock, heading, orderHeadings, tableRegion, taskBox } from './blocks.js';
import { el } from './dom.js';
import { renderInline } from './inline.js';

/**
 * @typedef {{ node: HTMLElement, source: string }} Rendered
 */

/** Deeper quotes and lists than this are shown as text. */
const DEEPEST = 10;
const FENCE = /^( {0,3})(`{3,}|~{3,})[ \t]*([^`\n]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?=[ \t]|$)/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:[ \t]+|$)/;
const DELIMITER_ROW = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

/** What each target shows now, so that only changed blocks are rendered again. @type {WeakMap<Element, Rendered[]>} */
const shown = new WeakMap();

/**
 * Shows `text` in `target`.
 *
 * @param {Element} target
 * @param {string} text
 */
export function renderMarkdown(target, text) {
  const before = shown.get(target) ?? [];
  const sources = splitBlocks(toLines(text), 0);
  /** @type {Rendered[]} */
  const now = sources.map((block, index) => {
    const source = block.lines.join('\n');
    const kept = before[index];
    return kept && kept.source === source ? kept : { node: block.build(), source };
  });
  for (let index = 0; index < Math.max(before.length, now.length); index += 1) {
    const old = before[index];
    const fresh = now[index];
    if (!fresh) old.node.remove();
    else if (!old) target.append(fresh.node);
    else if (old !== fresh) old.node.replaceWith(fresh.node);
  }
  shown.set(target, now);
  orderHeadings(target);
}

/** @param {string} text */
function toLines(text) {
  return text.replaceAll('\r\n', '\n').replaceAll('\t', '    ').split('\n');
}

/**
 * @param {string[]} lines @param {number} depth
 * @returns {{ lines: string[], build: () => HTMLElement }[]}
 */
function splitBlocks(lines, depth) {
  const blocks = [];
  for (let at = 0; at < lines.length; ) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const { end, build } = blockAt(lines, at, depth);
    blocks.push({ lines: lines.slice(at, end), build });
    at = end;
  }
  return blocks;
}

/**
 * @param {string[]} lines @param {number} depth
 * @returns {HTMLElement[]}
 */
function renderBlocks(lines, depth) {
  return splitBlocks(lines, depth).map((block) => block.build());
}

/**
 * @param {string[]} lines @param {number} at @param {number} depth
 * @returns {{ end: number, build: () => HTMLElement }} the block that begins here and where it ends
 */
function blockAt(lines, at, depth) {
  const line = lines[at];
  if (FENCE.test(line)) return fencedCode(lines, at);
  if (HEADING.test(line)) return { end: at + 1, build: () => headingLine(line) };
  if (RULE.test(line)) return { end: at + 1, build: () => el('hr') };
  if (depth < DEEPEST) {
    if (QUOTE.test(line)) return quote(lines, at, depth);
    if (ITEM.test(line)) return list(lines, at, depth);
  }
  if (startsTable(lines, at)) return table(lines, at);
  return paragraph(lines, at, depth);
}

/** @param {string[]} lines @param {number} at */
function fencedCode(lines, at) {
  const [, indent, fence, info] = /** @type {RegExpExecArray} */ (FENCE.exec(lines[at]));
  const closes = (/** @type {string} */ line) => {
    const bare = line.trim();
    return bare.length >= fence.length && bare === fence[0].repeat(bare.length);
  };
  let end = at + 1;
  while (end < lines.length && !closes(lines[end])) end += 1;
  const strip = new RegExp(`^ {0,${indent.length}}`);
  const code = lines.slice(at + 1, end).map((line) => line.replace(strip, '')).join('\n');
  const language = info.trim().split(/\s/)[0].slice(0, 30);
  return { end: Math.min(end + 1, lines.length), build: () => codeBlock(code, language) };
}

/** @param {string} line */
function headingLine(line) {
  const [opening, marks] = /** @type {RegExpExecArray} */ (HEADING.exec(line));
  let text = line.slice(opening.length).trim();
  // Not by /#+$/, which restarts at each sign of a long row.
  let end = text.length;
  while (text[end - 1] === '#') end -= 1;
  const bare = text.slice(0, end);
  if (bare === '' || bare.endsWith(' ')) text = bare.trim();
  return heading(marks.length, renderInline(text));
}

/** @param {string[]} lines @param {number} at @param {number} depth */
function quote(lines, at, depth) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const inside = lines.slice(at, end).map((line) => line.replace(QUOTE, ''));
  return { end, build: () => el('blockquote', { dir: 'auto' }, ...renderBlocks(inside, depth + 1)) };
}

/** @param {string[]} lines @param {number} at @param {number} depth */
function list(lines, at, depth) {
  const first = /** @type {RegExpExecArray} */ (ITEM.exec(lines[at]));
  const kind = kindOf(first[2]);
  /** @type {string[][]} */
  const items = [];
  let loose = false;
  let end = at;
  while (end < lines.length) {
    const match = RULE.test(lines[end]) ? null : ITEM.exec(lines[end]);
    if (!match || kindOf(match[2]) !== kind) break;
    const stop = itemEnd(lines, end, match[1].length);
    const wide = Math.min(match[0].length, match[1].length + match[2].length + 1);
    const own = [lines[end].slice(match[0].length), ...lines.slice(end + 1, stop).map((line) => outdent(line, wide))];
    items.push(own);
    let next = stop;
    while (next < lines.length && !lines[next].trim()) next += 1;
    const continues = next < lines.length && kindOf(ITEM.exec(lines[next])?.[2] ?? '') === kind;
    if (continues && next > stop) loose = true;
    if (own.some((line, index) => !line.trim() && index > 0 && index < own.length - 1)) loose = true;
    end = continues ? next : stop;
    if (!continues) break;
  }
  return { end, build: () => listNode(items, first[2], loose, depth) };
}

/** @param {string} marker @returns {string} items of one list share it */
function kindOf(marker) {
  if (!marker) return '';
  return /\d/.test(marker) ? `1${marker.at(-1)}` : marker;
}

/** @param {string[]} lines @param {number} at @param {number} indent of its marker @returns {number} */
function itemEnd(lines, at, indent) {
  let end = at + 1;
  while (end < lines.length) {
    const line = lines[end];
    if (!line.trim()) {
      let next = end;
      while (next < lines.length && !lines[next].trim()) next += 1;
      if (next >= lines.length || indentOf(lines[next]) < indent + 2) return end;
      end = next;
    } else if (indentOf(line) >= indent + 2 || !(startsBlock(line) || ITEM.test(line))) {
      end += 1;
    } else {
      return end;
    }
  }
  return end;
}

/** @param {string} line */
function indentOf(line) {
  return line.length - line.trimStart().length;
}

/** @param {string} line @param {number} width */
function outdent(line, width) {
  return line.slice(Math.min(width, indentOf(line)));
}

/** @param {string[][]} items @param {string} marker @param {boolean} loose @param {number} depth */
function listNode(items, marker, loose, depth) {
  const number = Number.parseInt(marker, 10);
  const ordered = !Number.isNaN(number);
  const node = el(ordered ? 'ol' : 'ul', { dir: 'auto', start: ordered && number !== 1 ? number : undefined });
  for (const lines of items) {
    const task = /^\[([ xX])\] /.exec(lines[0]);
    const own = task ? [lines[0].slice(4), ...lines.slice(1)] : lines;
    const blocks = renderBlocks(own, depth + 1);
    const inside = blocks.flatMap((block) => (!loose && block.tagName === 'P' ? [...block.childNodes] : [block]));
    const box = task && taskBox(task[1] !== ' ');
    node.append(el('li', { class: task ? 'task' : undefined }, box, ...inside));
  }
  return node;
}

/** @param {string[]} lines @param {number} at */
function startsTable(lines, at) {
  const next = lines[at + 1];
  return next !== undefined && lines[at].includes('|') && next.includes('-') && DELIMITER_ROW.test(next)
    && cells(lines[at]).length === cells(next).length;
}

/** @param {string[]} lines @param {number} at */
function table(lines, at) {
  let end = at + 2;
  while (end < lines.length && lines[end].includes('|') && lines[end].trim()) end += 1;
  const rows = lines.slice(at + 2, end);
  return { end, build: () => tableNode(cells(lines[at]), cells(lines[at + 1]), rows.map(cells)) };
}

/** @param {string[]} heads @param {string[]} delimiters @param {string[][]} rows */
function tableNode(heads, delimiters, rows) {
  const aligned = delimiters.map((cell) => (cell.endsWith(':') ? (cell.startsWith(':') ? 'center' : 'end') : undefined));
  const row = (/** @type {'th' | 'td'} */ tag, /** @type {string[]} */ texts) =>
    el('tr', {}, ...heads.map((_, column) =>
      el(tag, { dir: 'auto', class: aligned[column], scope: tag === 'th' && 'col' }, ...renderInline(texts[column] ?? ''))));
  const body = el('tbody', {}, ...rows.map((texts) => row('td', texts)));
  const node = el('table', {}, el('thead', {}, row('th', heads)), body);
  return tableRegion(node);
}

/** @param {string} line */
function cells(line) {
  const bare = line.trim().replace(/^\|/, '').replace(/(?<!\\)\|$/, '');
  return bare.split(/(?<!\\)\|/).map((cell) => cell.replaceAll('\\|', '|').trim());
}

/** @param {string[]} lines @param {number} at @param {number} depth */
function paragraph(lines, at, depth) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !(depth < DEEPEST && startsBlock(lines[end])) && !startsTable(lines, end)) {
    end += 1;
  }
  const text = lines.slice(at, end).map((line) => line.trim()).join('\n');
  return { end, build: () => el('p', { dir: 'auto' }, ...renderInline(text)) };
}

/** @param {string} line whether it interrupts a paragraph */
function startsBlock(line) {
  if (FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line)) return true;
  const item = ITEM.exec(line);
  return item !== null && line.length > item[0].length && (!/\d/.test(item[2]) || item[2].startsWith('1'));
}
