/**
 * The page's own state: the connection, short texts above the composer, the
 * tab's title, and announcements for screen readers only.
 *
 * @module status
 */

import { byId } from './dom.js';
import { read } from './settings.js';
import { t } from './texts.js';

/** @typedef {import('./connection.js').LinkState} LinkState */

export class StatusLine {
  constructor() {
    this.indicator = byId('status');
    this.words = byId('status-words');
    this.banner = byId('banner');
    this.note = byId('note');
    this.voice = byId('announcer');
    this.bot = 'Parlour';
    this.answering = false;
    this.unread = 0;
    /** Whether a connection was lost and is not back yet. */
    this.lost = false;
    for (const change of ['online', 'offline']) window.addEventListener(change, () => this.#sayWhy());
    byId('note-close').addEventListener('click', () => this.tell(''));
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) this.unread = 0;
      this.#title();
    });
  }

  /** @param {string} bot */
  name(bot) {
    this.bot = bot;
    this.#title();
  }

  /**
   * @param {LinkState} state
   * @param {boolean} known whether this browser has been signed in
   */
  link(state, known) {
    if (state === 'waiting') this.lost = true;
    if (state === 'ready') this.lost = false;
    const trying = this.lost && (state === 'connecting' || state === 'loading');
    this.indicator.dataset.state = state;
    this.words.textContent = t(`link.${trying ? 'waiting' : state}`);
    this.banner.hidden = !(known && this.lost);
    this.#sayWhy();
  }

  /** Why there is no connection: the browser has no network, or the gateway does not answer. */
  #sayWhy() {
    byId('banner-words').textContent = navigator.onLine ? t('banner.reconnecting') : t('banner.offline');
  }

  /** The conversation's title, and whether it is stored. @param {import('./label.js').Label} label */
  session({ named, title: given, offRecord }) {
    const title = named || given;
    byId('chat-title').textContent = title;
    byId('chat-title').title = title;
    byId('chat-title').hidden = !title;
    byId('off-record').hidden = !offRecord;
  }

  /** @param {string} words visible to all; empty removes them */
  tell(words) {
    byId('note-words').textContent = words;
    this.note.hidden = !words;
  }

  /** @param {string} words for a screen reader only */
  announce(words) {
    this.voice.textContent = words;
  }

  /** @param {boolean} running whether an answer is being written */
  running(running) {
    if (running === this.answering) return;
    this.answering = running;
    this.#title();
  }

  /** An answer is complete. */
  answered() {
    if (document.hidden) this.unread = 1;
    this.#title();
    const wanted = document.hidden && read('notify') === 'yes' && 'Notification' in window;
    // Without the words: others may see the screen.
    if (wanted && Notification.permission === 'granted') new Notification(this.bot, { body: t('status.notification'), tag: 'answer' });
  }

  #title() {
    const { bot } = this;
    document.title = this.unread && document.hidden ? t('status.new_answer', { bot }) : `${this.answering ? '… ' : ''}${bot}`;
  }
}
