/**
 * The workflow editor: a dialog over the page with the saved documents, one document as a drawing and as a list, its
 * mistakes, runs and versions. The gateway checks, saves and runs; this module composes the parts.
 *
 * @module editor
 */

import { el, icon } from './dom.js';
import { About, places } from './editor-about.js';
import { Canvas } from './editor-canvas.js';
import { Draft, emptyDocument } from './editor-document.js';
import { settleFields } from './editor-fields.js';
import { pressed } from './editor-keys.js';
import { layOut } from './editor-layout.js';
import { Library } from './editor-library.js';
import { StepList } from './editor-list.js';
import { RunPanel } from './editor-runs.js';
import { sign } from './editor-shapes.js';
import { NARROW, Tabs } from './editor-tabs.js';
import { Versions } from './editor-versions.js';
import { Wire } from './editor-wire.js';
import { t } from './texts.js';

/** @typedef {import('./connection.js').Frame} Frame */
/** @typedef {import('./editor-document.js').Kind} Kind */
/** @typedef {import('./editor-run.js').Shown} Shown */
/** @typedef {import('./editor-about.js').Mistake} Mistake */

const CHECK_MS = 600;

export class Editor {
  /**
   * @param {object} options
   * @param {(frame: Frame) => boolean} options.send
   * @param {(chat: string) => boolean} options.onChat
   */
  constructor({ send, onChat }) {
    this.onChat = onChat;
    this.wire = new Wire(send);
    this.name = '';
    /** The shown version, and the newest one; 0 for a document that is not saved yet. */
    this.version = 0;
    this.newest = 0;
    this.draft = new Draft(emptyDocument(''), () => {});
    /** @type {{ node?: string, connection?: number }} */
    this.selected = {};
    this.wrong = places([]);
    /** @type {Shown | null} */
    this.shown = null;
    this.checked = false;
    this.checkTimer = 0;
    /** @type {[string, string]} */
    this.renamed = ['', ''];
    this.#build();
    /** For those who may look at it as a panel of the page. */
    this.panel = { show: () => this.#show() };
  }

  #build() {
    this.live = el('p', { class: 'visually-hidden', role: 'status', 'aria-live': 'polite', 'data-testid': 'wf-live' });
    this.trouble = el('p', { class: 'message wf-trouble', role: 'alert', hidden: true, 'data-testid': 'wf-trouble' });
    this.title = el('h2', { id: 'wf-heading', tabindex: -1 }, t('editor.title'));
    this.facts = el('span', { class: 'soft', 'data-testid': 'wf-facts' });
    this.back = this.#key('editor.all', icon('list'), () => this.#leave());
    this.undo = this.#key('editor.undo', sign('undo'), () => this.draft.undo());
    this.redo = this.#key('editor.redo', sign('redo'), () => this.draft.redo());
    this.check = this.#word('editor.check', 'plain', () => this.#check(true));
    this.save = this.#word('editor.save', 'primary', () => this.saved().then(() => undefined));
    const close = el('button', { type: 'button', class: 'tool', 'aria-label': t('editor.close'), 'data-testid': 'wf-close' }, icon('close'));
    close.addEventListener('click', () => this.close());
    this.keys = el('div', { class: 'wf-keys', role: 'group', 'aria-label': t('editor.actions') }, this.undo, this.redo, this.check, this.save);
    const head = el('header', { class: 'wf-head' }, this.back, el('div', { class: 'wf-names' }, this.title, this.facts), this.keys, close);
    this.library = new Library(this);
    this.canvas = new Canvas(this);
    this.list = new StepList(this);
    this.runs = new RunPanel(this);
    this.versions = new Versions(this);
    this.about = new About(this);
    this.views = new Tabs('view', t('editor.views'), { drawing: this.canvas.element, list: this.list.element }, (name) => name === 'drawing' && this.canvas.fit());
    this.side = new Tabs('side', t('editor.parts'), { step: this.about.form, mistakes: this.about.mistakes, runs: this.runs.element, versions: this.versions.element }, (name) => this.#opened(name));
    this.work = el('div', { class: 'wf-work' }, this.views.element, this.side.element);
    this.dialog = el('dialog', { class: 'wf', 'aria-labelledby': 'wf-heading', 'data-testid': 'wf' }, head, this.trouble, this.library.element, this.work, this.live);
    document.body.append(this.dialog);
    this.dialog.addEventListener('cancel', (event) => (event.preventDefault(), this.close()));
    this.dialog.addEventListener('keydown', (event) => pressed(this, event));
    this.work.hidden = true;
  }

  /** @param {string} key @param {Element} shape @param {() => void} act */
  #key(key, shape, act) {
    const button = el('button', { type: 'button', class: 'tool', 'aria-label': t(key), title: t(key), 'data-testid': `wf-${key.replace('editor.', '')}` }, shape);
    button.addEventListener('click', () => (settleFields(), act()));
    return button;
  }

  /** @param {string} key @param {string} look @param {() => Promise<void>} act */
  #word(key, look, act) {
    const button = el('button', { type: 'button', class: look, 'data-testid': `wf-${key.replace('editor.', '')}` }, t(key));
    button.addEventListener('click', () => void this.attempt(act));
    return button;
  }

  /** @param {Frame} frame of any type @returns {boolean} whether nothing else must show it */
  frame(frame) {
    if (frame.type === 'welcome' && !frame.editor && this.dialog.open) this.dialog.close();
    return this.wire.frame(frame);
  }

  #show() {
    if (this.dialog.open) return;
    this.dialog.showModal();
    this.views.choose(matchMedia(NARROW).matches ? 'list' : 'drawing');
    void this.attempt(() => this.library.read());
    this.draw();
  }

  /** Whether nothing would be lost, or the person agrees to lose it. */
  mayLeave() {
    return !this.draft.changed || window.confirm(t('editor.unsaved'));
  }

  close() {
    if (!this.mayLeave()) return;
    this.draft.saved = this.draft.document;
    this.runs.forget();
    this.dialog.close();
  }

  /** Back to all documents. */
  #leave() {
    if (!this.mayLeave()) return;
    this.#set('', emptyDocument(''), 0, 0, []);
    void this.attempt(() => this.library.read());
    this.title.focus();
  }

  /** @param {string} chat @returns {boolean} whether the page shows that conversation */
  openChat(chat) {
    if (!this.onChat(chat)) return false;
    this.close();
    return true;
  }

  /** Does something that the gateway may refuse, and says why it has. @param {() => Promise<any>} act */
  async attempt(act) {
    settleFields();
    this.#tell('');
    try {
      await act();
    } catch (error) {
      this.#tell(error instanceof Error ? error.message : String(error));
      if (/** @type {any} */ (error)?.code === 'conflict') void this.versions.conflict().catch(() => undefined);
    }
  }

  /** @param {string} words */
  #tell(words) {
    this.trouble.textContent = words;
    this.trouble.hidden = !words;
  }

  /** For a screen reader. @param {string} words */
  say(words) {
    // The same words again are read again.
    this.live.textContent = this.live.textContent === words ? `${words}\u00a0` : words;
  }

  /** Opens a saved document. @param {string} name @param {number} [version] */
  async open(name, version) {
    const found = await this.wire.ask('workflow_open', { name, ...(version ? { version } : {}) });
    const another = name !== this.name;
    this.#set(name, found.document, found.version, found.versions[0].version, found.mistakes);
    this.versions.take(found.versions);
    if (!another) return;
    this.runs.forget();
    this.side.choose('step');
    this.title.focus();
    await this.runs.list();
  }

  /** Begins a document that is not saved yet. @param {string} name @param {Record<string, any>} [document] */
  begin(name, document) {
    this.#set(name, { ...(document ?? emptyDocument(name)), name }, 0, 0, []);
    this.versions.take([]);
    this.runs.forget();
    this.side.choose('step');
    this.title.focus();
  }

  /** @param {string} name @param {Record<string, any>} document @param {number} version @param {number} newest @param {Mistake[]} mistakes */
  #set(name, document, version, newest, mistakes) {
    this.versions.choice.hidden = true;
    Object.assign(this, { name, version, newest, selected: {}, checked: mistakes.length > 0, shown: null });
    this.about.forget();
    this.draft = new Draft(document, () => this.#changed());
    layOut(this.draft.document);
    this.wrong = places(mistakes);
    this.draw();
    this.canvas.fit();
  }

  #changed() {
    const [from, to] = this.renamed;
    // A name that is taken back leaves its step selected.
    if (this.selected.node && !this.draft.node(this.selected.node)) this.selected = this.selected.node === to && this.draft.node(from) ? { node: from } : {};
    if ((this.selected.connection ?? -1) >= this.draft.document.connections.length) this.selected = {};
    clearTimeout(this.checkTimer);
    if (this.checked) this.checkTimer = setTimeout(() => void this.#check(false).catch(() => undefined), CHECK_MS);
    if (this.runs.run) this.runs.draw();
    else this.draw();
  }

  /** @param {boolean} aloud whether the result is said */
  async #check(aloud) {
    const { draft } = this;
    const { mistakes } = await this.wire.ask('workflow_check', { document: draft.document });
    if (draft === this.draft) this.#found(mistakes, aloud);
  }

  /** @param {Mistake[]} mistakes @param {boolean} aloud */
  #found(mistakes, aloud) {
    this.checked = true;
    this.wrong = places(mistakes);
    this.draw();
    if (!aloud) return;
    if (mistakes.length > 0) this.side.visit('mistakes');
    this.say([t('editor.mistakes', { count: mistakes.length }), ...mistakes.map(({ words }) => words)].join('. '));
  }

  /** The saved document: what was changed is saved first. @returns {Promise<{ name: string, version: number }>} */
  async saved() {
    const { draft, name } = this;
    if (draft.changed || !this.version || this.version !== this.newest) {
      const sent = draft.document;
      const found = await this.wire.ask('workflow_save', { name, base: this.newest, document: sent });
      Object.assign(this, { version: found.version, newest: found.version });
      draft.saved = sent;
      this.versions.choice.hidden = true;
      this.#found(found.mistakes, found.mistakes.length > 0);
      await this.versions.read();
      if (found.mistakes.length === 0) this.say(t('editor.saved', { count: found.version }));
    }
    return { name, version: this.version };
  }

  /** @param {Kind} type @param {number} x @param {number} y @returns {string} */
  add(type, x, y) {
    const id = this.draft.add(type, x, y);
    this.select({ node: id });
    return id;
  }

  /** @param {string} from @param {string} to */
  rename(from, to) {
    if (!this.draft.node(from)) return true;
    if (this.selected.node === from && to && !this.draft.node(to)) this.selected = { node: to };
    if (this.list.opened.has(from)) this.list.opened.add(to);
    this.renamed = [from, to];
    return this.draft.rename(from, to);
  }

  /** @param {{ node?: string, connection?: number }} what */
  select(what) {
    this.selected = what;
    if (what.node || what.connection !== undefined) this.side.choose('step');
    this.draw();
  }

  /** @param {Shown | null} shown what a run has done */
  show(shown) {
    this.shown = shown;
    this.draw();
  }

  draw() {
    const known = this.name !== '';
    this.work.hidden = !known;
    this.library.element.hidden = known;
    this.keys.hidden = !known;
    this.back.hidden = !known;
    this.title.textContent = this.name || t('editor.title');
    const words = !known ? '' : !this.version ? t('editor.new_document') : t('editor.version', { count: this.version });
    this.facts.textContent = [words, known && this.draft.changed ? t('editor.changed') : '', known && this.version < this.newest ? t('editor.old') : ''].filter(Boolean).join(' · ');
    this.undo.disabled = this.draft.before.length === 0;
    this.redo.disabled = this.draft.after.length === 0;
    if (!known) return;
    this.canvas.draw();
    this.list.draw();
    this.about.draw();
  }

  /** @param {string} name of a part */
  #opened(name) {
    if (name === 'versions' && this.version) void this.versions.read().catch((error) => this.#tell(error.message));
  }
}
