/**
 * How the steps of a workflow, their exits and their states are called on the page.
 *
 * @module editor-words
 */

import { OTHERWISE, SUBAGENT } from './editor-document.js';
import { t } from './texts.js';

/** @typedef {import('./editor-document.js').Node} Node */

/** The exits that have a name. @type {Record<string, string>} */
export const HANDLE_KEYS = { approve: 'editor.exit.approve', reject: 'editor.exit.reject', [OTHERWISE]: 'editor.exit.false', [SUBAGENT]: 'editor.exit.subagent', '': 'editor.exit.next' };

/** @param {string} kind */
export function kindWords(kind) {
  return t(`editor.kind.${kind}`);
}

/** @param {Node} node */
export function titleOf(node) {
  return node.id;
}

/** @param {Node} node a line about what it does */
export function summaryOf(node) {
  const { data } = node;
  if (node.type === 'agent') return data.name || data.agentName || data.userPrompt || t('editor.kind.agent');
  if (node.type === 'approval') return data.prompt || t('editor.kind.approval');
  if (node.type === 'start') return data.initialInput || t('editor.start_input');
  return t(`editor.kind.${node.type}`);
}

/** @param {Node} node @param {string} handle */
export function handleWords(node, handle) {
  const key = HANDLE_KEYS[handle];
  if (key) return t(key);
  const condition = node.data.conditions?.[Number(handle.replace('condition-', ''))];
  if (!condition) return handle;
  const value = condition.value || '…';
  return condition.operator === 'equal' ? t('editor.exit.equal', { value }) : t('editor.exit.contains', { value });
}
