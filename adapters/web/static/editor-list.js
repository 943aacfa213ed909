/**
 * A workflow as a list of its steps: everything that can be drawn, by keyboard, for a screen reader and on a phone.
 *
 * @module editor-list
 */

import { el, icon } from './dom.js';
import { KINDS, SUBAGENT, handlesOf } from './editor-document.js';
import { fieldsOf } from './editor-fields.js';
import { freePlace } from './editor-layout.js';
import { sign } from './editor-shapes.js';
import { handleWords, kindWords } from './editor-words.js';
import { t } from './texts.js';

/** @typedef {import('./editor-document.js').Kind} Kind */
/** @typedef {import('./editor-document.js').Node} Node */
/** @typedef {import('./editor.js').Editor} Editor */

/**
 * Draws a part again, and gives the focus back to what has the same key.
 *
 * @param {HTMLElement} part
 * @param {() => void} draw
 * @param {[string, string]} renamed the last name of a step that changed, and its new one
 */
export function keepFocus(part, draw, [from, to]) {
  const before = /** @type {HTMLElement | null} */ (document.activeElement);
  const key = before && part.contains(before) ? (before.dataset.key ?? '') : '';
  draw();
  if (!key) return;
  const keys = [...part.querySelectorAll('[data-key]')].map((one) => /** @type {HTMLElement} */ (one));
  const again = keys.find((one) => one.dataset.key === key) ?? keys.find((one) => from && one.dataset.key === key.replace(`:${from}`, `:${to}`)) ?? keys[0];
  again?.focus();
}

export class StepList {
  /** @param {Editor} editor */
  constructor(editor) {
    this.editor = editor;
    this.drawn = '';
    /** Steps whose settings are open. @type {Set<string>} */
    this.opened = new Set();
    this.list = el('ol', { class: 'wf-list', 'data-testid': 'wf-list' });
    this.element = el('div', { class: 'wf-listing' }, this.#adders(), this.list);
  }

  #adders() {
    const kind = el('select', { class: 'field', id: 'wf-list-kind', 'data-testid': 'wf-list-kind' });
    for (const one of KINDS.slice(1).concat('start')) kind.append(el('option', { value: one }, kindWords(one)));
    const add = el('button', { type: 'submit', class: 'primary', 'data-testid': 'wf-list-add' }, t('editor.add_step'));
    const form = el('form', { class: 'wf-adder', novalidate: true }, el('label', { for: 'wf-list-kind' }, t('editor.add')), kind, add);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      const id = this.editor.add(/** @type {Kind} */ (kind.value), ...freePlace(this.editor.draft.document));
      this.open(id);
      this.editor.say(t('editor.added', { name: id }));
    });
    return form;
  }

  /** Opens the settings of a step and moves the focus there. @param {string} id @param {string} [field] */
  open(id, field = 'id') {
    this.opened.add(id);
    this.drawn = '';
    this.draw();
    const wanted = `field:${id}:${field}`;
    const found = [...this.list.querySelectorAll('[data-key]')].map((one) => /** @type {HTMLElement} */ (one));
    (found.find((one) => one.dataset.key === wanted) ?? found.find((one) => one.dataset.key === `field:${id}:id`))?.focus();
  }

  draw() {
    const { draft, wrong, shown } = this.editor;
    const now = JSON.stringify([draft.shape, [...wrong.nodes.keys()], [...wrong.connections.keys()], wrong.words, shown?.states]);
    if (now === this.drawn) return;
    this.drawn = now;
    // The server's answer to a check may come between a choice and the press that connects.
    const chosen = new Map(this.#choices().map((one) => [one.dataset.key, one.value]));
    keepFocus(this.list, () => this.list.replaceChildren(...draft.ordered.map((node) => this.#step(node))), this.editor.renamed);
    for (const one of this.#choices()) {
      const value = chosen.get(one.dataset.key);
      if (value !== undefined && [...one.options].some((option) => option.value === value)) one.value = value;
    }
  }

  /** The lists from which a new connection is chosen. @returns {HTMLSelectElement[]} */
  #choices() {
    return [...this.list.querySelectorAll('.wf-connector select')].map((one) => /** @type {HTMLSelectElement} */ (one));
  }

  /** @param {Node} node */
  #step(node) {
    const { wrong, shown } = this.editor;
    const state = shown?.states[node.id] ?? '';
    const mistakes = [...(wrong.nodes.get(node.id) ?? []), ...this.#wrongConnections(node)];
    const chip = el('span', { class: 'wf-mark', 'data-kind': node.type });
    chip.append(sign(/** @type {any} */ (node.type in { start: 1, agent: 1, if: 1, approval: 1 } ? node.type : 'wrong')));
    const remove = el('button', { type: 'button', class: 'tool', 'aria-label': t('editor.delete_step', { name: node.id }), 'data-key': `delete:${node.id}`, 'data-testid': `wf-delete-${node.id}` }, icon('bin'));
    remove.addEventListener('click', () => {
      this.editor.draft.remove(node.id);
      this.editor.say(t('editor.deleted', { name: node.id }));
    });
    const details = el('details', { open: this.opened.has(node.id) }, el('summary', { 'data-key': `settings:${node.id}`, 'data-testid': `wf-settings-${node.id}` }, t('editor.settings')), fieldsOf(this.editor, node));
    details.addEventListener('toggle', () => (details.open ? this.opened.add(node.id) : this.opened.delete(node.id)));
    return el(
      'li',
      { class: 'wf-card', 'data-id': node.id, 'data-state': state, 'data-wrong': mistakes.length > 0 ? 'yes' : false },
      el('div', { class: 'wf-card-head' }, chip, el('div', { class: 'wf-names' }, el('h3', { dir: 'auto' }, node.id), el('span', { class: 'soft' }, kindWords(node.type))), state ? el('span', { class: 'wf-state', 'data-state': state }, t(`editor.state.${state}`)) : null, remove),
      mistakes.length > 0 ? el('ul', { class: 'wf-mistakes' }, ...mistakes.map(({ what, field }) => el('li', {}, field ? `${field}: ${what}` : what))) : null,
      this.#connections(node),
      details,
    );
  }

  /** @param {Node} node */
  #wrongConnections(node) {
    const { draft, wrong } = this.editor;
    return draft.document.connections.flatMap((one, at) => (one.source === node.id ? (wrong.connections.get(at) ?? []) : []));
  }

  /** @param {Node} node */
  #connections(node) {
    const { draft } = this.editor;
    const lines = draft.document.connections.flatMap((one, at) => {
      if (one.source !== node.id) return [];
      const from = handleWords(node, one.sourceHandle ?? '');
      const remove = el('button', { type: 'button', class: 'tool', 'aria-label': t('editor.disconnect', { exit: from, name: one.target }), 'data-key': `cut:${node.id}:${one.sourceHandle}:${one.target}` }, icon('close'));
      remove.addEventListener('click', () => {
        draft.disconnect(at);
        this.editor.say(t('editor.disconnected', { exit: from, name: one.target }));
      });
      return [el('li', {}, el('span', { class: 'wf-exit-line' }, el('span', {}, from), ' → ', el('strong', { dir: 'auto' }, one.target)), remove)];
    });
    return el('div', { class: 'wf-exits' }, lines.length > 0 ? el('ul', {}, ...lines) : null, this.#connector(node));
  }

  /** @param {Node} node */
  #connector(node) {
    const exits = [...handlesOf(node), ...(node.type === 'agent' ? [SUBAGENT] : [])];
    const exit = el('select', { class: 'field', 'aria-label': t('editor.exit_of', { name: node.id }), 'data-key': `exit:${node.id}`, 'data-testid': `wf-exit-${node.id}` });
    for (const handle of exits) exit.append(el('option', { value: handle }, handleWords(node, handle)));
    const target = el('select', { class: 'field', 'aria-label': t('editor.target_of', { name: node.id }), 'data-key': `target:${node.id}`, 'data-testid': `wf-target-${node.id}` });
    for (const other of this.editor.draft.document.nodes) if (other.type !== 'start') target.append(el('option', { value: other.id }, other.id));
    const connect = el('button', { type: 'button', class: 'plain', 'data-key': `connect:${node.id}`, 'data-testid': `wf-connect-${node.id}`, 'aria-label': t('editor.connect_step', { name: node.id }) }, t('editor.connect'));
    connect.addEventListener('click', () => {
      if (!target.value) return;
      this.editor.draft.connect(node.id, exit.value, target.value);
      this.editor.say(t('editor.connected', { exit: handleWords(node, exit.value), name: target.value }));
    });
    return el('div', { class: 'wf-connector', role: 'group', 'aria-label': t('editor.connect_step', { name: node.id }) }, exits.length > 1 ? exit : null, target, connect);
  }
}
