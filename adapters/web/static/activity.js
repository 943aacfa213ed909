/**
 * Texts for the bot's activity between the question and the answer. One line each; events that are
 * irrelevant to a reader (graph nodes) have none.
 *
 * @module activity
 */

import { t } from './texts.js';
import { spanOf } from './times.js';
import { toolWords } from './tools.js';

/** @type {Record<string, (event: Record<string, any>) => string>} */
const WORDS = {
  action_started: (event) => event.summary || t('activity.using', { tool: toolWords(event.tool_name) }),
  action_progress: (event) => event.line,
  action_completed: ({ tool_name: name, success, summary: why }) => {
    const tool = toolWords(name);
    if (success) return t('activity.done', { tool });
    return why ? t('activity.not_done_why', { tool, why }) : t('activity.not_done', { tool });
  },
  shield_verdict: (event) => t(VERDICTS[event.decision] ?? 'activity.checked', { tool: toolWords(event.tool_name) }),
  step_started: (event) => t('activity.step', { step: event.step }),
  otr_blocked: (event) => t('activity.off_record', { why: event.reason }),
  sub_agent_spawned: (event) => t('activity.agent_starts', { name: event.name, task: event.task }),
  sub_agent_progress: (event) => t('activity.agent_progress', { name: event.name, status: event.status }),
  sub_agent_completed: (event) => t('activity.agent_done', { name: event.name }),
  sub_agent_failed: (event) => t('activity.agent_failed', { name: event.name, why: event.reason }),
  sub_agent_cancelled: (event) => t('activity.agent_stopped', { name: event.name }),
};

/** @type {Record<string, string>} */
const VERDICTS = { ALLOW: 'activity.allowed', BLOCK: 'activity.not_allowed', ESCALATE: 'activity.asks' };

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
  const words = seconds >= 1 ? t('activity.turn_about', { time: spanOf(seconds) }) : t('activity.turn');
  return { spoken: true, wait: ahead > 0 || seconds >= 1 ? words : '' };
}
