/**
 * SVG shapes of the workflow drawing. Text only becomes text nodes.
 *
 * @module editor-shapes
 */

import { HANDLE_KEYS, handleWords, summaryOf, titleOf } from './editor-words.js';
import { SUBAGENT, handlesOf } from './editor-document.js';
import { WIDTH, curve, entryOf, exitOf, heightOf, placeOf } from './editor-layout.js';

/** @typedef {import('./editor-document.js').Node} Node */
/** @typedef {import('./editor-run.js').Shown} Shown */

const SVG = 'http://www.w3.org/2000/svg';
/** One path for each kind of step, each state of one in a run, and each sign of a button. */
const PATHS = {
  start: 'M8.5 6v12l9.5-6z',
  agent: 'M12 4.5l1.7 5.8 5.8 1.7-5.8 1.7L12 19.5l-1.7-5.8L4.5 12l5.8-1.7z',
  if: 'M12 4v5M12 9L6 15v5M12 9l6 6v5',
  approval: 'M4.5 12.5l5 5 10-11',
  done: 'M5.5 12.5l4.5 4.5 8.5-10',
  failed: 'M7 7l10 10M17 7L7 17',
  waiting: 'M9 6v12M15 6v12',
  running: 'M6 12h.1M12 12h.1M18 12h.1',
  wrong: 'M12 6v7.5M12 17.3v.2',
  undo: 'M8.5 5 4 9.5 8.5 14M4 9.5h10a5.5 5.5 0 0 1 0 11h-3',
  redo: 'M15.5 5 20 9.5 15.5 14M20 9.5H10a5.5 5.5 0 0 0 0 11h3',
  first: 'M6 6v12M18 6l-8 6 8 6z',
  back: 'M15.5 6l-8 6 8 6z',
  next: 'M8.5 6l8 6-8 6z',
  last: 'M18 6v12M6 6l8 6-8 6z',
  in: 'M12 5v14M5 12h14',
  out: 'M5 12h14',
  fit: 'M4.5 9.5v-5h5M19.5 9.5v-5h-5M4.5 14.5v5h5M19.5 14.5v5h-5',
};

/**
 * @param {string} tag
 * @param {Record<string, string | number | undefined>} attributes
 * @param {...(Node | Element | string | false | null | undefined)} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) node.setAttribute(name, String(value));
  for (const child of children) if (child) node.append(/** @type {any} */ (child));
  return node;
}

/** @param {keyof typeof PATHS} name @returns {SVGElement} a sign that no one but the eye needs */
export function sign(name) {
  return svg('svg', { class: `icon sign-${name}`, viewBox: '0 0 24 24', 'aria-hidden': 'true' }, svg('path', { d: PATHS[name] }));
}

/** @param {string} text @param {number} most characters */
function short(text, most) {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/**
 * @param {Node} node
 * @param {object} about
 * @param {boolean} about.selected
 * @param {boolean} about.wrong it has mistakes
 * @param {string} about.state of the shown run; empty without one
 */
export function step(node, { selected, wrong, state }) {
  const [x, y] = placeOf(node);
  const height = heightOf(node);
  const handles = handlesOf(node);
  const rows = handles.length > 1 || node.type === 'if';
  const group = svg('g', { class: 'wf-step', transform: `translate(${x} ${y})`, 'data-id': node.id, 'data-kind': node.type, 'data-state': state || undefined, 'data-selected': selected ? 'yes' : undefined, 'data-wrong': wrong ? 'yes' : undefined });
  group.append(
    svg('rect', { class: 'wf-box', width: WIDTH, height, rx: 14 }),
    svg('rect', { class: 'wf-chip', x: 11, y: 13, width: 32, height: 32, rx: 10 }),
    svg('g', { class: 'wf-icon', transform: 'translate(18 20) scale(0.75)' }, svg('path', { d: PATHS[node.type] ?? PATHS.wrong })),
    svg('text', { class: 'wf-title', x: 53, y: 26 }, short(titleOf(node), 15)),
    svg('text', { class: 'wf-sub', x: 53, y: 43 }, short(summaryOf(node), 20)),
  );
  if (rows) {
    group.append(svg('path', { class: 'wf-rule', d: `M0 58H${WIDTH}` }));
    handles.forEach((handle, at) => group.append(svg('text', { class: 'wf-exit', 'data-handle': HANDLE_KEYS[handle] ? handle : undefined, x: WIDTH - 16, y: 58 + at * 26 + 17, 'text-anchor': 'end' }, short(handleWords(node, handle), 24))));
  }
  if (node.type !== 'start') group.append(svg('circle', { class: 'wf-in', cx: 0, cy: 29, r: 4.5 }));
  for (const handle of node.data.tools?.subagents ? [...handles, SUBAGENT] : handles) {
    const [ex, ey] = exitOf(node, handle);
    group.append(
      svg('g', { class: 'wf-port', 'data-handle': handle }, svg('circle', { class: 'wf-reach', cx: ex - x, cy: ey - y, r: 15 }), svg('circle', { class: 'wf-out', cx: ex - x, cy: ey - y, r: 6 })),
    );
  }
  const badge = state || (wrong && 'wrong');
  if (badge) group.append(svg('g', { class: 'wf-badge', 'data-badge': badge, transform: `translate(${WIDTH - 8} 4)` }, svg('circle', { r: 11 }), svg('g', { transform: 'translate(-8.4 -8.4) scale(0.7)' }, svg('path', { d: PATHS[/** @type {keyof typeof PATHS} */ (badge)] ?? PATHS.wrong }))));
  return group;
}

/**
 * @param {Node} from @param {Node} to @param {string} handle @param {number} at its place in the document
 * @param {Node[]} nodes all steps
 * @param {{ selected: boolean, wrong: boolean, taken: boolean }} about
 */
export function wire(from, to, handle, at, nodes, { selected, wrong, taken }) {
  const end = entryOf(to, handle);
  const below = handle === SUBAGENT;
  const d = curve(exitOf(from, handle), below ? [end[0], end[1] - 7] : [end[0] - 7, end[1]], { down: below, nodes });
  const head = below ? `M${end[0] - 5} ${end[1] - 9}h10l-5 8z` : `M${end[0] - 9} ${end[1] - 5}v10l8 -5z`;
  return svg(
    'g',
    { class: 'wf-wire', 'data-at': at, 'data-selected': selected ? 'yes' : undefined, 'data-wrong': wrong ? 'yes' : undefined, 'data-taken': taken ? 'yes' : undefined, 'data-below': below ? 'yes' : undefined },
    svg('path', { class: 'wf-grab', d }),
    svg('path', { class: 'wf-line', d }),
    svg('path', { class: 'wf-tip', d: head }),
  );
}
