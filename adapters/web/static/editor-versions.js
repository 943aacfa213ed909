/**
 * The versions of a workflow: look at one, restore it, save under another name, write a file, delete the document.
 *
 * @module editor-versions
 */

import { el } from './dom.js';
import { t } from './texts.js';
import { dayWords, timeOf } from './times.js';

/** @typedef {import('./editor.js').Editor} Editor */
/** @typedef {import('./editor-library.js').Saved} Saved */

export class Versions {
  /** @param {Editor} editor */
  constructor(editor) {
    this.editor = editor;
    this.choice = el('div', { class: 'wf-question', hidden: true, 'data-testid': 'wf-conflict' });
    this.list = el('ol', { class: 'chat-list', 'data-testid': 'wf-versions' });
    this.copy = el('input', { class: 'field', id: 'wf-copy', maxlength: 60, autocomplete: 'off', 'data-testid': 'wf-copy' });
    const save = el('button', { type: 'submit', class: 'plain', 'data-testid': 'wf-copy-save' }, t('editor.copy_save'));
    const form = el('form', { class: 'wf-field', novalidate: true }, el('label', { for: 'wf-copy' }, t('editor.copy')), this.copy, save);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void editor.attempt(() => this.#copy());
    });
    const file = el('button', { type: 'button', class: 'plain' }, t('editor.export'));
    file.addEventListener('click', () => this.#export());
    this.remove = el('button', { type: 'button', class: 'plain danger-text', 'data-testid': 'wf-delete-document' }, t('editor.delete_document'));
    this.remove.addEventListener('click', () => void editor.attempt(() => this.#delete()));
    this.element = el('div', { class: 'wf-versions' }, this.choice, this.list, form, file, this.remove);
  }

  async read() {
    const found = await this.editor.wire.ask('workflow_open', { name: this.editor.name, version: this.editor.version });
    this.take(found.versions);
  }

  /** @param {Saved[]} versions newest first */
  take(versions) {
    this.remove.hidden = versions.length === 0;
    this.list.replaceChildren(...versions.map((one) => this.#version(one, versions[0].version)));
  }

  /** @param {Saved} saved @param {number} newest */
  #version({ version, saved_at: at, runs }, newest) {
    const { editor } = this;
    const open = el('button', { type: 'button', class: 'chat-open', 'aria-current': version === editor.version ? 'true' : false, 'data-testid': `wf-version-${version}` }, el('span', { class: 'chat-name' }, t('editor.version', { count: version })), el('span', { class: 'soft' }, dayWords(at), ' ', timeOf(at), runs ? '' : ` · ${t('editor.draft')}`));
    open.addEventListener('click', () => void editor.attempt(() => this.#open(version)));
    const restore = el('button', { type: 'button', class: 'quiet', 'aria-label': t('editor.restore', { count: version }), 'data-testid': `wf-restore-${version}` }, t('editor.restore_short'));
    restore.addEventListener('click', () =>
      void editor.attempt(async () => {
        if (await this.#open(version)) await editor.saved();
      }),
    );
    return el('li', {}, open, version === newest ? null : restore);
  }

  /** @param {number} version @returns {Promise<boolean>} */
  async #open(version) {
    if (!this.editor.mayLeave()) return false;
    await this.editor.open(this.editor.name, version);
    return true;
  }

  /** Somebody else has saved meanwhile: the person chooses whose document counts. */
  async conflict() {
    const { editor } = this;
    editor.side.choose('versions');
    const { versions } = await editor.wire.ask('workflow_open', { name: editor.name });
    const act = (/** @type {string} */ key, /** @type {() => Promise<any>} */ work) => {
      const button = el('button', { type: 'button', class: 'choice', 'data-testid': `wf-${key.replace('editor.', '')}` }, t(key));
      button.addEventListener('click', () => void editor.attempt(work));
      return button;
    };
    this.choice.replaceChildren(
      el('p', {}, t('editor.conflict', { count: versions[0].version })),
      el('div', { class: 'choices' }, act('editor.take_theirs', () => editor.open(editor.name)), act('editor.keep_mine', async () => {
        editor.newest = versions[0].version;
        await editor.saved();
      })),
    );
    this.choice.hidden = false;
  }

  async #copy() {
    const name = this.copy.value.trim();
    if (!name) return this.copy.focus();
    const { editor } = this;
    await editor.wire.ask('workflow_save', { name, base: 0, document: { ...editor.draft.document, name } });
    this.copy.value = '';
    editor.draft.saved = editor.draft.document;
    await editor.open(name);
  }

  #export() {
    const { draft, name } = this.editor;
    const url = URL.createObjectURL(new Blob([`${JSON.stringify(draft.document, null, 2)}\n`], { type: 'application/json' }));
    const link = el('a', { href: url, download: `${name}.workflow.json` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  async #delete() {
    const { editor } = this;
    if (!window.confirm(t('editor.delete_sure', { name: editor.name }))) return;
    await editor.wire.ask('workflow_delete', { name: editor.name, base: editor.newest });
    editor.draft.saved = editor.draft.document;
    editor.back.click();
  }
}
