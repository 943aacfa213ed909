/**
 * A dialog over the page with a title, a place for messages and a button that closes it. The browser keeps the focus
 * inside, closes it by Escape and returns the focus to where it was.
 *
 * @module panel
 */

import { el, icon } from './dom.js';

export class Panel {
  /**
   * @param {string} name for ids
   * @param {string} title
   * @param {string} closing the name of the button that closes it
   * @param {() => void} onOpen
   */
  constructor(name, title, closing, onOpen) {
    this.onOpen = onOpen;
    this.body = el('div', { class: 'panel-body' });
    this.message = el('p', { class: 'message', role: 'alert', hidden: true });
    const close = el('button', { type: 'button', class: 'tool', 'aria-label': closing }, icon('close'));
    const id = `panel-${name}`;
    const head = el('div', { class: 'panel-head' }, el('h2', { id }, title), close);
    this.dialog = el('dialog', { class: 'panel', 'aria-labelledby': id }, head, this.message, this.body);
    document.body.append(this.dialog);
    close.addEventListener('click', () => this.close());
    this.dialog.addEventListener('click', (event) => {
      if (event.target === this.dialog) this.close();
    });
  }

  get open() {
    return this.dialog.open;
  }

  show() {
    if (this.open) return;
    this.say('');
    this.dialog.showModal();
    this.onOpen();
  }

  close() {
    this.dialog.close();
  }

  /** @param {string} words why something was not done; empty removes them */
  say(words) {
    this.message.textContent = words;
    this.message.hidden = !words;
  }
}
