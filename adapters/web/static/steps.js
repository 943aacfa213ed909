/**
 * The steps of the work on an answer, from the live events and from what is stored with it. Plain
 * data; work.js draws it.
 *
 * @module steps
 */

import { t } from './texts.js';
import { toolWords } from './tools.js';

/**
 * @typedef {object} Step
 * @property {'tool' | 'agent' | 'words'} kind
 * @property {string} name of the tool or the sub-agent; empty for words
 * @property {string} label the label before the text: the tool's or the sub-agent's name; empty where the text contains it
 * @property {string} words what it does, or its result
 * @property {'running' | 'asking' | 'done' | 'failed'} state
 */

/** More would be a log, and cost memory in a page that stays open for weeks. */
const MOST_STEPS = 200;

/** @type {Record<string, (steps: Step[], event: Record<string, any>) => Step[]>} */
const CHANGES = {
  action_started: (steps, { tool_name: name, summary }) => [...steps, { kind: 'tool', name, label: summary ? '' : toolWords(name), words: summary, state: 'running' }],
  shield_verdict: (steps, { tool_name: name, decision }) => changed(steps, 'tool', name, { state: decision === 'ESCALATE' ? 'asking' : 'running' }),
  action_progress: (steps, { tool_name: name, summary, line }) => changed(steps, 'tool', name, { words: `${summary}: ${line}` }),
  action_completed: (steps, { tool_name: name, success, summary }) => ended(steps, 'tool', name, summary, success),
  otr_blocked: (steps, { reason }) => [...steps, { kind: 'words', name: '', label: '', words: t('activity.off_record', { why: reason }), state: 'failed' }],
  sub_agent_spawned: (steps, { name, task }) => [...steps, { kind: 'agent', name, label: name, words: task, state: 'running' }],
  sub_agent_progress: (steps, { name, status }) => changed(steps, 'agent', name, { words: status }),
  sub_agent_completed: (steps, { name, result }) => ended(steps, 'agent', name, result, true),
  sub_agent_failed: (steps, { name, reason }) => ended(steps, 'agent', name, reason, false),
  sub_agent_cancelled: (steps, { name }) => ended(steps, 'agent', name, t('steps.stopped'), false),
};

/**
 * @param {Step[]} steps
 * @param {Record<string, any>} event
 * @returns {Step[]} the same list where the event is no step
 */
export function withStep(steps, event) {
  return CHANGES[event.type]?.(steps, event).slice(-MOST_STEPS) ?? steps;
}

/**
 * The steps that are stored with an answer.
 *
 * @param {any} thoughts
 * @returns {Step[]}
 */
export function stepsOf(thoughts) {
  if (!Array.isArray(thoughts)) return [];
  return thoughts.filter((one) => one && typeof one.summary === 'string').slice(-MOST_STEPS).map(stepOf);
}

/** @param {Record<string, any>} thought @returns {Step} */
function stepOf({ stage, summary, detail }) {
  const state = detail?.success === false ? 'failed' : 'done';
  const name = stage === 'tool_call' && typeof detail?.tool_name === 'string' ? detail.tool_name : '';
  // The summary of a call begins with the tool's name: `read_file -> path: notes.txt`.
  const words = name && summary.startsWith(name) ? summary.slice(name.length).replace(/^\s*(?:->|:)?\s*/, '') : summary;
  return { kind: name ? 'tool' : 'words', name, label: name && toolWords(name), words, state };
}

/**
 * The steps of an answer that is complete: none of them is running.
 *
 * @param {Step[]} steps
 * @returns {Step[]}
 */
export function settled(steps) {
  return steps.map((step) => (isOpen(step) ? { ...step, state: 'failed' } : step));
}

/** @param {Step[]} steps @param {Step['kind']} kind @param {string} name @param {Partial<Step>} fields @returns {Step[]} */
function changed(steps, kind, name, fields) {
  const open = steps.filter((step) => step.kind === kind && step.name === name && isOpen(step)).pop();
  return open ? steps.map((step) => (step === open ? { ...step, ...fields } : step)) : steps;
}

/** @param {Step[]} steps @param {Step['kind']} kind @param {string} name @param {string} words @param {boolean} success @returns {Step[]} */
function ended(steps, kind, name, words, success) {
  const state = success ? 'done' : 'failed';
  const open = steps.filter((step) => step.kind === kind && step.name === name && isOpen(step)).pop();
  if (!open) return [...steps, { kind, name, label: kind === 'tool' ? toolWords(name) : name, words, state }];
  // Its arguments are more useful than the fact that it succeeded.
  if (kind === 'agent') return changed(steps, kind, name, { state, words: words || open.words });
  const why = success || !words ? '' : words;
  return changed(steps, kind, name, { state, words: [open.words, why].filter(Boolean).join(': ') || words });
}

/** @param {Step} step */
function isOpen(step) {
  return step.state === 'running' || step.state === 'asking';
}
