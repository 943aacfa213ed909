/**
 * Where the steps of a workflow without places are drawn, and their sizes.
 *
 * @module editor-layout
 */

import { SUBAGENT, handlesOf } from './editor-document.js';

/** @typedef {import('./editor-document.js').Document} Document */
/** @typedef {import('./editor-document.js').Node} Node */

export const WIDTH = 184;
const HEAD = 58;
const ROW = 26;
const ACROSS = WIDTH + 58;
const GAP = 36;
/** How far below the steps a connection back to an earlier one runs. */
const BELOW = 30;

/** @param {Node} node */
export function heightOf(node) {
  const handles = handlesOf(node);
  return handles.length > 1 || node.type === 'if' ? HEAD + handles.length * ROW + 6 : HEAD;
}

/** @param {Node} node @param {string} handle @returns {[number, number]} where a connection leaves it */
export function exitOf(node, handle) {
  const [x, y] = placeOf(node);
  if (handle === SUBAGENT) return [x + WIDTH / 2, y + heightOf(node)];
  const handles = handlesOf(node);
  const at = handles.indexOf(handle);
  if (handles.length === 1 && node.type !== 'if') return [x + WIDTH, y + HEAD / 2];
  return [x + WIDTH, y + HEAD + (Math.max(at, 0) + 0.5) * ROW];
}

/** @param {Node} node @param {string} handle @returns {[number, number]} where a connection enters it */
export function entryOf(node, handle) {
  const [x, y] = placeOf(node);
  return handle === SUBAGENT ? [x + WIDTH / 2, y] : [x, y + HEAD / 2];
}

/** @param {Node} node @returns {[number, number]} */
export function placeOf({ x, y }) {
  return [Number.isFinite(x) ? Number(x) : 0, Number.isFinite(y) ? Number(y) : 0];
}

/** Gives every step a place, if one of them has none: in columns, as a run reaches them. @param {Document} document changed in place */
export function layOut(document) {
  if (document.nodes.every((one) => Number.isFinite(one.x) && Number.isFinite(one.y))) return;
  const columns = columnsOf(document);
  const heights = columns.map((column) => column.reduce((sum, node) => sum + heightOf(node) + GAP, -GAP));
  const tallest = Math.max(0, ...heights);
  columns.forEach((column, across) => {
    let y = (tallest - heights[across]) / 2;
    for (const node of column) {
      Object.assign(node, { x: across * ACROSS, y: Math.round(y) });
      y += heightOf(node) + GAP;
    }
  });
}

/** @param {Document} document @returns {Node[][]} */
function columnsOf({ nodes, connections }) {
  /** @type {Map<string, number>} */
  const depth = new Map();
  const waiting = nodes.filter((one) => one.type === 'start').map((one) => one.id);
  for (const id of waiting) depth.set(id, 0);
  for (const id of waiting) {
    for (const one of connections) {
      if (one.source !== id || depth.has(one.target)) continue;
      depth.set(one.target, (depth.get(id) ?? 0) + 1);
      waiting.push(one.target);
    }
  }
  /** @type {Node[][]} */
  const columns = [];
  for (const id of [...depth.keys(), ...nodes.map((one) => one.id)]) {
    const node = nodes.find((one) => one.id === id);
    if (!node || columns.some((column) => column.includes(node))) continue;
    (columns[depth.get(id) ?? 0] ??= []).push(node);
  }
  return [...columns].map((column) => column ?? []);
}

/** @param {Document} document @returns {[number, number, number, number]} left, top, width and height of all steps */
export function boundsOf({ nodes }) {
  if (nodes.length === 0) return [0, 0, WIDTH, HEAD];
  const places = nodes.map((node) => ({ at: placeOf(node), height: heightOf(node) }));
  const left = Math.min(...places.map(({ at }) => at[0]));
  const top = Math.min(...places.map(({ at }) => at[1]));
  const right = Math.max(...places.map(({ at }) => at[0] + WIDTH));
  const bottom = Math.max(...places.map(({ at, height }) => at[1] + height)) + BELOW;
  return [left, top, right - left, bottom - top];
}

/** A free place for one more step. @param {Document} document @returns {[number, number]} */
export function freePlace(document) {
  const [left, top, width, height] = boundsOf(document);
  return document.nodes.length === 0 ? [0, 0] : [left + width + ACROSS - WIDTH, top + Math.max(0, height / 2 - HEAD / 2)];
}

/** @param {Document} document @param {number} x @param {number} y @returns {Node | undefined} the step that is drawn there */
export function nodeAt({ nodes }, x, y) {
  return [...nodes].reverse().find((node) => {
    const [left, top] = placeOf(node);
    return x >= left - 14 && x <= left + WIDTH && y >= top && y <= top + heightOf(node);
  });
}

/**
 * @param {[number, number]} from
 * @param {[number, number]} to
 * @param {object} [how]
 * @param {boolean} [how.down] a sub-agent's, which hangs below
 * @param {Node[]} [how.nodes] the steps below which a connection back runs
 * @returns {string} the path of a connection
 */
export function curve([x1, y1], [x2, y2], { down = false, nodes = [] } = {}) {
  if (down) {
    const bend = Math.max(30, Math.abs(y2 - y1) / 2);
    return `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
  }
  if (x2 >= x1 + 16) {
    const bend = Math.max(30, (x2 - x1) / 2);
    return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
  }
  const [left, right, r] = [x2 - 22, x1 + 22, 14];
  const under = nodes.filter((node) => placeOf(node)[0] < right && placeOf(node)[0] + WIDTH > left);
  const low = Math.max(y1, y2, ...under.map((node) => placeOf(node)[1] + heightOf(node))) + BELOW;
  return `M${x1} ${y1}h ${22 - r}q ${r} 0 ${r} ${r}V ${low - r}q 0 ${r} ${-r} ${r}H ${left + r}q ${-r} 0 ${-r} ${-r}V ${y2 + r}q 0 ${-r} ${r} ${-r}H ${x2}`;
}
