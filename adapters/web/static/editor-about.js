/**
 * What is selected in a workflow, as a form, and the mistakes of the whole, each with the way to its place.
 *
 * @module editor-about
 */

import { el } from './dom.js';
import { fieldsOf } from './editor-fields.js';
import { keepFocus } from './editor-list.js';
import { kindWords } from './editor-words.js';
import { t } from './texts.js';

/** @typedef {import('./editor.js').Editor} Editor */
/** @typedef {{ node: string, connection: number | null, field: string, what: string, words: string }} Mistake */

/** The mistakes by what they are about. @param {Mistake[]} all */
export function places(all) {
  /** @type {Map<string, Mistake[]>} */
  const nodes = new Map();
  /** @type {Map<number, Mistake[]>} */
  const connections = new Map();
  for (const one of all) {
    if (one.connection !== null) connections.set(one.connection, [...(connections.get(one.connection) ?? []), one]);
    else if (one.node) nodes.set(one.node, [...(nodes.get(one.node) ?? []), one]);
  }
  return { all, nodes, connections, words: all.map(({ words }) => words) };
}

export class About {
  /** @param {Editor} editor */
  constructor(editor) {
    this.editor = editor;
    this.drawn = '';
    this.form = el('div', { class: 'wf-form' });
    this.none = el('p', { class: 'soft' });
    this.list = el('ol', { class: 'wf-mistakes', 'data-testid': 'wf-mistakes' });
    this.mistakes = el('div', {}, this.none, this.list);
  }

  /** Another document is shown. */
  forget() {
    this.drawn = '';
  }

  draw() {
    const { draft, selected } = this.editor;
    const now = `${selected.node} ${selected.connection} ${draft.shape}`;
    if (now !== this.drawn) {
      this.drawn = now;
      keepFocus(this.form, () => this.#drawForm(), this.editor.renamed);
    }
    this.#drawMistakes();
  }

  #drawForm() {
    const { draft, selected } = this.editor;
    const node = selected.node === undefined ? undefined : draft.node(selected.node);
    const at = selected.connection ?? -1;
    const line = draft.document.connections[at];
    if (node) this.form.replaceChildren(el('h3', {}, kindWords(node.type)), fieldsOf(this.editor, node), this.#remove(() => draft.remove(node.id)));
    else if (line) this.form.replaceChildren(el('h3', {}, t('editor.connection')), el('p', { dir: 'auto' }, `${line.source} → ${line.target}`), this.#remove(() => draft.disconnect(at)));
    else this.form.replaceChildren(el('p', { class: 'soft' }, t('editor.select_hint')));
  }

  /** @param {() => void} act */
  #remove(act) {
    const button = el('button', { type: 'button', class: 'plain danger-text', 'data-testid': 'wf-remove' }, t('editor.delete'));
    button.addEventListener('click', act);
    return button;
  }

  #drawMistakes() {
    const { all } = this.editor.wrong;
    this.editor.side.count('mistakes', all.length);
    this.none.textContent = all.length > 0 ? '' : this.editor.checked ? t('editor.mistakes', { count: 0 }) : t('editor.not_checked');
    this.list.replaceChildren(
      ...all.map((one) => {
        const button = el('button', { type: 'button', class: 'wf-mistake' }, one.words);
        button.addEventListener('click', () => this.#goTo(one));
        return el('li', {}, button);
      }),
    );
  }

  /** @param {Mistake} mistake */
  #goTo({ node, connection, field }) {
    const { editor } = this;
    const line = connection === null ? undefined : editor.draft.document.connections[connection];
    if (editor.views.chosen === 'list') editor.list.open(node || line?.source || '', field.replace(/^data\./, ''));
    else if (node) editor.select({ node });
    else if (connection !== null) editor.select({ connection });
  }
}
