/**
 * The form of one step of a workflow: for the drawing beside it, and for the list within it.
 *
 * @module editor-fields
 */

import { el, icon } from './dom.js';
import { t } from './texts.js';

/** @typedef {import('./editor-document.js').Node} Node */
/** @typedef {import('./editor.js').Editor} Editor */

let made = 0;

/**
 * @param {Editor} editor
 * @param {Node} node
 * @returns {HTMLElement}
 */
export function fieldsOf(editor, node) {
  const form = el('div', { class: 'wf-fields' }, nameField(editor, node));
  const add = (/** @type {HTMLElement[]} */ ...parts) => form.append(...parts);
  if (node.type === 'start') add(text(editor, node, 'initialInput', 'editor.field.initial', 3));
  if (node.type === 'agent') {
    add(text(editor, node, 'name', 'editor.field.name', 1), text(editor, node, 'systemPrompt', 'editor.field.system', 4), text(editor, node, 'userPrompt', 'editor.field.user', 5));
    add(el('p', { class: 'soft' }, t('editor.places', { previous: '{{PREVIOUS_OUTPUT}}', message: '{{MESSAGE}}', note: '{{NOTE:…}}' })));
    add(tool(editor, node, 'web_search', 'editor.field.web'), tool(editor, node, 'subagents', 'editor.field.subagents'), groups(editor, node));
  }
  if (node.type === 'if') add(conditions(editor, node));
  if (node.type === 'approval') {
    add(text(editor, node, 'prompt', 'editor.field.question', 3));
    add(words(editor, node, 'approvers', 'editor.field.approvers', 'editor.approvers_hint'), number(editor, node, 'expiresSeconds', 'editor.field.expires'));
  }
  return form;
}

/**
 * @param {string} label
 * @param {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} input
 * @param {string} key of the focus, and for tests
 * @param {string} [hint]
 */
function labelled(label, input, key, hint = '') {
  made += 1;
  input.id = `wf-field-${made}`;
  input.dataset.key = key;
  input.dataset.testid = `wf-${key.split(':').slice(2).join('-')}`;
  const note = hint ? el('p', { class: 'soft', id: `${input.id}-hint` }, hint) : null;
  if (note) input.setAttribute('aria-describedby', note.id);
  return el('div', { class: 'wf-field' }, el('label', { for: input.id }, label), input, note);
}

/** What follows the fields that were left. @type {Set<() => void>} */
const pending = new Set();
let pressing = false;
for (const type of ['pointerdown', 'pointerup', 'pointercancel']) window.addEventListener(type, () => (pressing = type === 'pointerdown'), { capture: true });

/** Does now what follows the fields that were left: before the document is sent. */
export function settleFields() {
  for (const act of [...pending]) {
    pending.delete(act);
    act();
  }
}

/**
 * Acts once the field is left and the focus, or the press of a button, has reached its aim: the form is drawn again then.
 *
 * @param {HTMLElement} input
 * @param {() => void} act
 */
function later(input, act) {
  input.addEventListener('change', () => {
    pending.add(act);
    setTimeout(() => {
      if (pressing) window.addEventListener('pointerup', () => setTimeout(settleFields), { once: true });
      else settleFields();
    });
  });
}

/** @param {Editor} editor @param {Node} node */
function nameField(editor, node) {
  const input = el('input', { class: 'field', value: node.id, autocomplete: 'off', spellcheck: 'false', maxlength: 120 });
  later(input, () => {
    const wanted = input.value.trim();
    if (editor.rename(node.id, wanted)) return;
    input.value = node.id;
    editor.say(t('editor.name_taken', { name: wanted || '…' }));
  });
  return labelled(t('editor.field.id'), input, `field:${node.id}:id`);
}

/** @param {Editor} editor @param {Node} node @param {string} field @param {string} key @param {number} rows */
function text(editor, node, field, key, rows) {
  const value = typeof node.data[field] === 'string' ? node.data[field] : '';
  const input = rows > 1 ? el('textarea', { class: 'field', rows, dir: 'auto' }) : el('input', { class: 'field', autocomplete: 'off', dir: 'auto' });
  input.value = value;
  input.addEventListener('input', () => editor.draft.set(node.id, field, input.value || undefined));
  return labelled(t(key), input, `field:${node.id}:${field}`);
}

/** A list of words, separated by commas. @param {Editor} editor @param {Node} node @param {string} field @param {string} key @param {string} hint */
function words(editor, node, field, key, hint) {
  const input = el('input', { class: 'field', autocomplete: 'off', spellcheck: 'false', value: (node.data[field] ?? []).join(', ') });
  input.addEventListener('input', () => editor.draft.set(node.id, field, listed(input.value)));
  return labelled(t(key), input, `field:${node.id}:${field}`, t(hint));
}

/** @param {string} given @returns {string[] | undefined} */
function listed(given) {
  const found = given.split(',').map((one) => one.trim()).filter(Boolean);
  return found.length > 0 ? found : undefined;
}

/** @param {Editor} editor @param {Node} node @param {string} field @param {string} key */
function number(editor, node, field, key) {
  const input = el('input', { class: 'field', type: 'number', min: 1, value: node.data[field] ?? '' });
  input.addEventListener('input', () => editor.draft.set(node.id, field, input.value === '' ? undefined : Number(input.value)));
  return labelled(t(key), input, `field:${node.id}:${field}`);
}

/** @param {Editor} editor @param {Node} node @param {string} name @param {string} key */
function tool(editor, node, name, key) {
  const box = el('input', { type: 'checkbox', checked: Boolean(node.data.tools?.[name]), 'data-key': `field:${node.id}:${name}`, 'data-testid': `wf-${name}` });
  box.addEventListener('change', () => changeTools(editor, node.id, { [name]: box.checked || undefined }));
  return el('label', { class: 'check' }, box, t(key));
}

/** @param {Editor} editor @param {Node} node */
function groups(editor, node) {
  const input = el('input', { class: 'field', autocomplete: 'off', spellcheck: 'false', value: (node.data.tools?.groups ?? []).join(', ') });
  later(input, () => changeTools(editor, node.id, { groups: listed(input.value) }));
  return labelled(t('editor.field.groups'), input, `field:${node.id}:groups`, t('editor.groups_hint'));
}

/** @param {Editor} editor @param {string} id @param {Record<string, any>} given undefined takes a field away */
function changeTools(editor, id, given) {
  const tools = { ...editor.draft.node(id)?.data.tools, ...given };
  for (const name of Object.keys(tools)) if (tools[name] === undefined) delete tools[name];
  editor.draft.change('', ({ nodes }) => {
    const { data } = /** @type {Node} */ (nodes.find((one) => one.id === id));
    if (Object.keys(tools).length > 0) data.tools = tools;
    else delete data.tools;
  });
}

/** @param {Editor} editor @param {Node} node */
function conditions(editor, node) {
  const rows = (node.data.conditions ?? []).map((/** @type {any} */ one, /** @type {number} */ at) => condition(editor, node, one, at));
  const more = el('button', { type: 'button', class: 'plain', 'data-key': `field:${node.id}:more`, 'data-testid': 'wf-more' }, t('editor.condition_add'));
  more.addEventListener('click', () =>
    editor.draft.change('', ({ nodes }) => {
      const { data } = /** @type {Node} */ (nodes.find((other) => other.id === node.id));
      data.conditions = [...(data.conditions ?? []), { operator: 'contains', value: '' }];
    }),
  );
  return el('fieldset', { class: 'wf-conditions' }, el('legend', {}, t('editor.field.conditions')), el('p', { class: 'soft' }, t('editor.conditions_hint')), ...rows, more);
}

/** @param {Editor} editor @param {Node} node @param {any} one @param {number} at */
function condition(editor, node, one, at) {
  const change = (/** @type {Record<string, any>} */ given) =>
    editor.draft.change(`condition-${at}:${node.id}`, ({ nodes }) => Object.assign(nodes.find((other) => other.id === node.id)?.data.conditions[at], given));
  const key = `field:${node.id}:condition-${at}`;
  const operator = el('select', { class: 'field', 'aria-label': t('editor.operator', { count: at + 1 }), 'data-key': `${key}-operator` });
  for (const name of ['contains', 'equal']) operator.append(el('option', { value: name, selected: one.operator === name }, name === 'equal' ? t('editor.equal') : t('editor.contains')));
  operator.addEventListener('change', () => change({ operator: operator.value }));
  const value = el('input', { class: 'field', value: one.value ?? '', 'aria-label': t('editor.value', { count: at + 1 }), 'data-key': key, 'data-testid': `wf-condition-${at}`, autocomplete: 'off', dir: 'auto' });
  value.addEventListener('input', () => change({ value: value.value }));
  // The exits are called by their values.
  later(value, () => editor.draft.settle());
  const remove = el('button', { type: 'button', class: 'tool', 'aria-label': t('editor.condition_remove', { count: at + 1 }), 'data-key': `${key}-remove` }, icon('close'));
  remove.addEventListener('click', () => editor.draft.removeCondition(node.id, at));
  return el('div', { class: 'wf-condition' }, operator, value, remove);
}
