/**
 * Texts for the bot's activity between the question and the answer. One line each; events that are
 * irrelevant to a reader (graph nodes) have none.
 *
 * @module activity
 */

import { spanOf } from './times.js';
import { toolWords } from './tools.js';

/** @type {Record<string, (event: Record<string, any>) => string>} */
const WORDS = {
  action_started: (event) => event.summary || `Using “${toolWords(event.tool_name)}”`,
  action_progress: (event) => event.line,
  action_completed: (event) => `${toolWords(event.tool_name)} ${event.success ? 'is done' : `was not done${event.summary ? `: ${event.summary}` : ''}`}`,
  shield_verdict: (event) => `${toolWords(event.tool_name)}: ${VERDICTS[event.decision] ?? 'checked'}`,
  otr_blocked: (event) => `Off the record: ${event.reason}`,
  sub_agent_spawned: (event) => `${event.name} starts: ${event.task}`,
  sub_agent_progress: (event) => `${event.name}: ${event.status}`,
  sub_agent_completed: (event) => `${event.name} is done`,
  sub_agent_failed: (event) => `${event.name} could not finish: ${event.reason}`,
  sub_agent_cancelled: (event) => `${event.name} was stopped`,
};

/** @type {Record<string, string>} */
const VERDICTS = { ALLOW: 'allowed', BLOCK: 'not allowed', ESCALATE: 'needs your word' };

/**
 * @param {Record<string, any>} event
 * @returns {string} empty when there is nothing to say
 */
export function activityOf(event) {
  return WORDS[event.type]?.(event) ?? '';
}

/** @param {Record<string, any>} event of a voice note's transcript @returns {Partial<import('./items.js').Item>} */
export function transcriptOf({ type, text, ahead, eta_s: seconds }) {
  if (type !== 'transcript_pending') return { text, spoken: true, wait: '', growing: type === 'transcript_partial' };
  const long = seconds >= 1 ? `, about ${spanOf(seconds)}` : '';
  return { spoken: true, wait: ahead > 0 || long ? `Waiting for its turn${long}` : '' };
}
