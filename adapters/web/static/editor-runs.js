/**
 * The panel of runs: begin one, follow it live, answer its approvals, and replay it entry by entry.
 *
 * @module editor-runs
 */

import { el } from './dom.js';
import { GOING, shownAt } from './editor-run.js';
import { sign } from './editor-shapes.js';
import { t } from './texts.js';
import { dayWords } from './times.js';

/** @typedef {import('./editor.js').Editor} Editor */
/** @typedef {import('./editor-run.js').Run} Run */

const OFTEN_MS = 700;
const SELDOM_MS = 2500;
const LISTED_CHARS = 400;

export class RunPanel {
  /** @param {Editor} editor */
  constructor(editor) {
    this.editor = editor;
    this.chat = '';
    /** @type {Run | null} */
    this.run = null;
    /** @type {{ interaction: string, node: string, prompt: string }[]} */
    this.questions = [];
    this.records = 0;
    /** How many entries of the log are shown; null for all, and those that come. @type {number | null} */
    this.at = null;
    this.timer = 0;
    this.element = el('div', { class: 'wf-run' });
    this.text = el('textarea', { class: 'field', id: 'wf-run-text', rows: 3, dir: 'auto', 'data-testid': 'wf-run-text' });
    this.begin = el('button', { type: 'submit', class: 'primary', 'data-testid': 'wf-run-start' }, t('editor.run'));
    const form = el('form', { class: 'wf-field', novalidate: true }, el('label', { for: 'wf-run-text' }, t('editor.run_text')), this.text, this.begin);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void editor.attempt(() => this.#start());
    });
    this.status = el('p', { class: 'wf-status', role: 'status', 'data-testid': 'wf-run-status' });
    this.talk = el('button', { type: 'button', class: 'quiet', 'data-testid': 'wf-talk' }, t('editor.conversation'));
    this.talk.addEventListener('click', () => this.editor.openChat(this.chat));
    this.asked = el('div', { class: 'wf-asked' });
    this.player = this.#player();
    this.log = el('ol', { class: 'wf-log', 'data-testid': 'wf-log' });
    this.past = el('ul', { class: 'chat-list', 'data-testid': 'wf-past' });
    this.pastPart = el('section', { hidden: true }, el('h3', {}, t('editor.past_runs')), this.past);
    this.element.append(form, el('div', { class: 'wf-status-line' }, this.status, this.talk), this.asked, this.player, this.log, this.pastPart);
  }

  #player() {
    this.range = el('input', { type: 'range', min: 0, max: 0, value: 0, 'aria-label': t('editor.replay'), 'data-testid': 'wf-replay' });
    this.range.addEventListener('input', () => this.#show(Number(this.range.value)));
    const step = (/** @type {string} */ key, /** @type {Parameters<typeof sign>[0]} */ name, /** @type {() => number} */ to) => {
      const button = el('button', { type: 'button', class: 'tool', 'aria-label': t(key), title: t(key), 'data-testid': `wf-replay-${name}` });
      button.append(sign(name));
      button.addEventListener('click', () => this.#show(to()));
      return button;
    };
    const count = () => this.run?.logs.length ?? 0;
    const now = () => this.at ?? count();
    this.place = el('span', { class: 'soft', 'data-testid': 'wf-replay-place' });
    const buttons = [step('editor.replay_first', 'first', () => 0), step('editor.replay_back', 'back', () => Math.max(0, now() - 1)), step('editor.replay_next', 'next', () => Math.min(count(), now() + 1)), step('editor.replay_last', 'last', () => count())];
    const part = el('div', { class: 'wf-player', role: 'group', 'aria-label': t('editor.replay') }, this.range, el('div', { class: 'wf-player-keys' }, ...buttons, this.place));
    part.hidden = true;
    return part;
  }

  /** Another document is shown, or none. */
  forget() {
    clearTimeout(this.timer);
    Object.assign(this, { chat: '', run: null, questions: [], records: 0, at: null });
    this.draw();
  }

  async #start() {
    const text = this.text.value.trim();
    if (!text) {
      this.text.focus();
      this.editor.say(t('editor.run_empty'));
      return;
    }
    const { name, version } = await this.editor.saved();
    const { chat } = await this.editor.wire.ask('workflow_start', { name, version, text });
    await this.follow(chat);
  }

  /** Shows a run, and follows it as long as it continues. @param {string} chat */
  async follow(chat) {
    this.forget();
    this.chat = chat;
    await this.#look();
  }

  async #look() {
    const { chat } = this;
    clearTimeout(this.timer);
    const found = await this.editor.wire.ask('workflow_run', { chat, seen: this.records });
    if (chat !== this.chat) return;
    if ('run' in found) await this.#take(found);
    if (this.run && (GOING.includes(this.run.status) || this.run.status === 'paused')) this.#again(this.run.status === 'paused' ? SELDOM_MS : OFTEN_MS);
  }

  /** @param {number} pause */
  #again(pause) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#look().catch(() => this.#again(SELDOM_MS)), pause);
  }

  /** @param {any} found */
  async #take(found) {
    if (found.version !== this.editor.version) await this.editor.open(found.name, found.version);
    this.records = found.records;
    this.run = found.run;
    this.questions = found.questions;
    this.draw();
    if (this.run && !GOING.includes(this.run.status)) void this.list();
  }

  /** @param {number} count */
  #show(count) {
    this.at = count >= (this.run?.logs.length ?? 0) && GOING.includes(this.run?.status ?? '') ? null : count;
    this.draw();
  }

  /** Reads the runs of the document that were begun before. */
  async list() {
    const { runs } = await this.editor.wire.ask('workflow_runs', { name: this.editor.name });
    this.pastPart.hidden = runs.length === 0;
    this.past.replaceChildren(...runs.map((/** @type {any} */ one) => this.#pastRun(one)));
  }

  /** @param {{ chat: string, version: number, at: number, status: string }} one */
  #pastRun({ chat, version, at, status }) {
    const button = el('button', { type: 'button', class: 'chat-open', 'aria-current': chat === this.chat ? 'true' : false }, el('span', { class: 'chat-name' }, t(`editor.status.${status}`)), el('span', { class: 'soft' }, t('editor.version', { count: version }), ' · ', dayWords(at)));
    button.addEventListener('click', () => {
      if (version === this.editor.version || this.editor.mayLeave()) void this.editor.attempt(() => this.follow(chat));
    });
    return el('li', {}, button);
  }

  draw() {
    const { run } = this;
    const count = run?.logs.length ?? 0;
    const at = Math.min(this.at ?? count, count);
    this.editor.show(run && shownAt(this.editor.draft.document, run, at));
    const words = run ? t(`editor.status.${run.status}`) : '';
    if (this.status.textContent !== words) this.status.textContent = words;
    this.status.dataset.status = run?.status ?? '';
    this.player.hidden = count === 0;
    this.talk.hidden = !run;
    Object.assign(this.range, { max: String(count), value: String(at) });
    this.place.textContent = count ? t('editor.replay_place', { at, count }) : '';
    this.#drawQuestions();
    this.#drawLog(run, at);
  }

  #drawQuestions() {
    const open = this.questions.map(({ interaction }) => interaction).join(' ');
    if (this.asked.dataset.open === open) return;
    this.asked.dataset.open = open;
    this.asked.replaceChildren(...this.questions.map((one) => this.#question(one)));
  }

  /** @param {{ interaction: string, node: string, prompt: string }} question */
  #question({ interaction, node, prompt }) {
    const note = el('input', { class: 'field', 'aria-label': t('editor.note'), placeholder: t('editor.note'), dir: 'auto', 'data-testid': 'wf-note' });
    const choices = ['approve', 'reject'].map((choice) => {
      const button = el('button', { type: 'button', class: choice === 'approve' ? 'choice allow' : 'choice', 'data-testid': `wf-${choice}` }, t(`editor.exit.${choice}`));
      button.addEventListener('click', () => void this.editor.attempt(() => this.#answer(interaction, choice, note.value)));
      return button;
    });
    return el('section', { class: 'wf-question', 'data-testid': 'wf-question' }, el('h3', {}, t('editor.asks', { name: node })), el('p', { class: 'reason', dir: 'auto' }, prompt), note, el('div', { class: 'choices' }, ...choices));
  }

  /** @param {string} interaction @param {string} choice @param {string} note */
  async #answer(interaction, choice, note) {
    await this.editor.wire.ask('workflow_answer', { chat: this.chat, interaction, choice, note });
    this.editor.say(t('editor.answered'));
    this.questions = [];
    this.#drawQuestions();
    this.#again(OFTEN_MS);
  }

  /** @param {Run | null} run @param {number} at */
  #drawLog(run, at) {
    const logs = run?.logs ?? [];
    while (this.log.children.length > logs.length) this.log.lastElementChild?.remove();
    logs.forEach(({ nodeId, type, content }, index) => {
      const known = /** @type {HTMLElement | undefined} */ (this.log.children[index]);
      if (known?.dataset.type === `${nodeId} ${type}` && known.dataset.run === run?.runId) return;
      const words = content.length > LISTED_CHARS ? `${content.slice(0, LISTED_CHARS)}…` : content;
      const line = el('li', { 'data-type': `${nodeId} ${type}`, 'data-run': run?.runId, 'data-kind': type }, el('strong', { dir: 'auto' }, nodeId), ' ', el('span', { class: 'soft' }, t(`editor.log.${type}`)), words ? el('p', { dir: 'auto' }, words) : null);
      if (known) known.replaceWith(line);
      else this.log.append(line);
    });
    [...this.log.children].forEach((line, index) => line.toggleAttribute('data-later', index >= at));
  }
}
