/**
 * Runs of a workflow: what the log of one says about each step, up to any entry of it. It draws nothing.
 *
 * @module editor-run
 */

import { OTHERWISE, SUBAGENT } from './editor-document.js';

/**
 * @typedef {'running' | 'done' | 'waiting' | 'failed'} State
 * @typedef {{ states: Record<string, State>, taken: Set<number> }} Shown the steps' states, and the connections that were followed
 * @typedef {{ timestamp: string, nodeId: string, type: string, content: string }} Entry
 * @typedef {{ runId: string, status: string, logs: Entry[], state: Record<string, any>, currentNodeId: string | null }} Run
 * @typedef {import('./editor-document.js').Document} Document
 */

/** A run in one of these continues by itself. */
export const GOING = ['pending', 'running'];

/**
 * @param {Document} document
 * @param {Run} run
 * @param {number} count so many entries of its log
 * @returns {Shown}
 */
export function shownAt(document, run, count) {
  /** @type {Shown} */
  const shown = { states: {}, taken: new Set() };
  /** The exits by which each step was left. @type {Map<string, Set<string>>} */
  const left = new Map();
  const leave = (/** @type {string} */ id, /** @type {string} */ handle) => left.set(id, (left.get(id) ?? new Set()).add(handle));
  for (const entry of run.logs.slice(0, count)) take(document, shown, left, leave, entry);
  const over = count >= run.logs.length && !GOING.includes(run.status) && run.status !== 'paused';
  // What had begun when the run was stopped has no end in the log.
  if (over) for (const [id, state] of Object.entries(shown.states)) if (state === 'running' || state === 'waiting') shown.states[id] = run.status === 'completed' ? 'done' : 'failed';
  return shown;
}

/**
 * @param {Document} document @param {Shown} shown @param {Map<string, Set<string>>} left
 * @param {(id: string, handle: string) => void} leave
 * @param {Entry} entry
 */
function take({ connections }, shown, left, leave, { nodeId, type, content }) {
  if (type === 'step_start') {
    shown.states[nodeId] = 'running';
    connections.forEach((one, at) => {
      if (one.target === nodeId && left.get(one.source)?.has(one.sourceHandle ?? '')) shown.taken.add(at);
    });
  } else if (type === 'start_prompt' || type === 'llm_response') {
    shown.states[nodeId] = 'done';
    leave(nodeId, '');
  } else if (type === 'logic_check') {
    shown.states[nodeId] = 'done';
    const number = /^Condition (\d+) /.exec(content);
    left.get(nodeId)?.delete(OTHERWISE);
    leave(nodeId, number && content.endsWith('true') ? `condition-${Number(number[1]) - 1}` : OTHERWISE);
  } else if (type === 'wait_input') {
    shown.states[nodeId] = 'waiting';
  } else if (type === 'input_received') {
    shown.states[nodeId] = 'done';
    leave(nodeId, /^User approved/.test(content) ? 'approve' : 'reject');
  } else if (type === 'llm_error' || type === 'error') {
    if (nodeId !== 'system') shown.states[nodeId] = 'failed';
  } else if (type.startsWith('subagent_call')) {
    call(connections, shown, type, content);
  }
}

/** @param {Document['connections']} connections @param {Shown} shown @param {string} type @param {string} content */
function call(connections, shown, type, content) {
  const id = calledIn(content);
  if (!id) return;
  shown.states[id] = type.endsWith('start') ? 'running' : type.endsWith('error') ? 'failed' : 'done';
  const at = connections.findIndex((one) => one.target === id && one.sourceHandle === SUBAGENT);
  if (at >= 0) shown.taken.add(at);
}

/** @param {string} content @returns {string} the id of the sub-agent */
function calledIn(content) {
  try {
    return String(JSON.parse(content).subagentNodeId ?? '');
  } catch {
    return '';
  }
}
