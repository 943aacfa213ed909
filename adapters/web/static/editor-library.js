/**
 * The saved workflows: open one, begin a new one, or read one from a file.
 *
 * @module editor-library
 */

import { el, icon } from './dom.js';
import { sign } from './editor-shapes.js';
import { t } from './texts.js';
import { dayWords } from './times.js';

/** @typedef {import('./editor.js').Editor} Editor */
/** @typedef {{ name: string, version: number, runs: boolean, saved_at: number }} Saved */

export class Library {
  /** @param {Editor} editor */
  constructor(editor) {
    this.editor = editor;
    this.name = el('input', { class: 'field', id: 'wf-name', maxlength: 60, autocomplete: 'off', 'data-testid': 'wf-name' });
    const begin = el('button', { type: 'submit', class: 'primary', 'data-testid': 'wf-new' }, t('editor.new'));
    const form = el('form', { class: 'wf-new', novalidate: true }, el('label', { for: 'wf-name' }, t('editor.name')), this.name, begin);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      const name = this.name.value.trim();
      if (!name) return this.name.focus();
      this.name.value = '';
      editor.begin(name);
    });
    const file = el('input', { type: 'file', accept: '.json,application/json', class: 'visually-hidden', id: 'wf-file', 'data-testid': 'wf-file' });
    file.addEventListener('change', () => void editor.attempt(() => this.#read(file)));
    const upload = el('label', { for: 'wf-file', class: 'wf-file plain' }, icon('file'), t('editor.import'));
    this.count = el('p', { class: 'soft', role: 'status' });
    this.list = el('ul', { class: 'wf-documents', 'data-testid': 'wf-documents' });
    this.element = el('section', { class: 'wf-library', 'aria-label': t('editor.title') }, el('p', { class: 'wf-lead' }, t('editor.lead')), form, this.count, this.list, file, upload);
  }

  async read() {
    const { documents } = await this.editor.wire.ask('workflows');
    this.count.textContent = t('editor.count', { count: documents.length });
    this.list.replaceChildren(...documents.map((/** @type {Saved} */ one) => this.#document(one)));
  }

  /** @param {Saved} saved */
  #document({ name, version, runs, saved_at: at }) {
    const mark = el('span', { class: 'wf-mark', 'data-kind': runs ? 'agent' : 'wrong' });
    mark.append(sign(runs ? 'if' : 'wrong'));
    const words = [t('editor.version', { count: version }), dayWords(at), runs ? '' : t('editor.draft')].filter(Boolean).join(' · ');
    const open = el('button', { type: 'button', class: 'wf-document' }, mark, el('span', { class: 'wf-names' }, el('strong', { dir: 'auto' }, name), el('span', { class: 'soft' }, words)));
    open.addEventListener('click', () => void this.editor.attempt(() => this.editor.open(name)));
    return el('li', {}, open);
  }

  /** @param {HTMLInputElement} input */
  async #read(input) {
    const [file] = input.files ?? [];
    input.value = '';
    if (!file) return;
    let document;
    try {
      document = JSON.parse(await file.text());
    } catch {
      throw new Error(t('editor.no_json', { name: file.name }));
    }
    const name = file.name.replace(/\.json$/i, '').replace(/\.workflow$/i, '').replace(/[^\p{L}\p{N}_ -]/gu, '-').slice(0, 60);
    this.editor.begin(document.name && /^[\p{L}\p{N}_][\p{L}\p{N}_ -]*$/u.test(document.name) ? document.name : name, document);
  }
}
