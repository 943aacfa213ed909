/**
 * The settings: name, devices, theme, voice, notifications, signing out. What concerns the bot is kept by the gateway,
 * what concerns the device in the browser.
 *
 * @module account
 */

import { byId, copyButton, el } from './dom.js';
import { newClientId } from './outbox.js';
import { Panel } from './panel.js';
import { chooseTheme, read, write } from './settings.js';
import { dayWords } from './times.js';

/** @typedef {import('./connection.js').Frame} Frame */

const THEMES = { '': 'Like the system', light: 'Light', dark: 'Dark' };
const VOICE = { off: 'Never', auto: 'After my voice notes', on: 'After each answer' };
const OWNER_WORDS = 'You are the owner of this bot. For another device of yours run “parlour link”; to invite somebody run “parlour people invite”.';

export class Account {
  /**
   * @param {object} options
   * @param {(frame: Frame) => boolean} options.send
   * @param {() => void} options.onSignOut this browser forgets its token
   */
  constructor({ send, onSignOut }) {
    this.send = send;
    /** Keys of running requests. @type {Set<string>} */
    this.asked = new Set();
    /** The id of this browser among the person's devices; empty for the owner. */
    this.own = '';
    this.panel = new Panel('Settings', () => this.#opened());
    this.person = el('div', { class: 'settings-part' });
    this.voice = el('div', { class: 'settings-part' });
    this.link = el('div', { class: 'settings-part', hidden: true });
    const out = el('button', { type: 'button', class: 'plain danger-text', 'data-testid': 'sign-out' }, 'Sign out of this browser');
    out.addEventListener('click', () => {
      if (this.own) send({ type: 'sign_out', client_id: newClientId(), device: this.own });
      onSignOut();
    });
    this.device = el('div', {});
    this.panel.body.append(this.person, this.link, this.voice, this.device, out);
  }

  /** @param {Frame} frame of any type @returns {boolean} whether nothing else must show it */
  frame(frame) {
    if (!this.asked.delete(frame.client_id)) return false;
    if (frame.type === 'account') this.#draw(frame);
    else if (frame.type === 'invitation') this.#showLink(frame);
    else if (frame.type === 'problem') this.panel.say(frame.message);
    return true;
  }

  #opened() {
    this.link.hidden = true;
    this.device.replaceChildren(this.#onDevice());
    this.#ask({ type: 'account' });
  }

  /** @param {Frame} frame */
  #ask(frame) {
    const clientId = newClientId();
    this.panel.say('');
    if (this.send({ ...frame, client_id: clientId })) this.asked.add(clientId);
    else this.panel.say('Not connected just now. Try again when the connection is back.');
  }

  /** @param {Frame} account */
  #draw({ person, name, devices, voice_replies: voiceReplies }) {
    this.own = devices.find((/** @type {any} */ one) => one.this)?.device ?? '';
    const voice = choice('voice-choice', VOICE, voiceReplies, (mode) =>
      this.send({ type: 'command', client_id: newClientId(), name: 'voice', argument: mode }));
    this.person.replaceChildren(...(person ? [this.#name(name), this.#devices(devices)] : [el('p', { class: 'soft' }, OWNER_WORDS)]));
    this.voice.replaceChildren(el('label', { for: 'voice-choice' }, 'Voice messages in my linked chats'), voice);
  }

  /** @param {string} name */
  #name(name) {
    const input = el('input', { id: 'person-name', class: 'field', value: name, maxlength: 60, dir: 'auto', autocomplete: 'nickname' });
    const form = el('form', { class: 'chat-form' }, el('label', { for: 'person-name' }, 'Your name'), input, el('button', { class: 'primary' }, 'Save'));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#ask({ type: 'rename_person', name: input.value.trim() || ' ' });
    });
    return form;
  }

  /** @param {{ device: string, name: string, seen_at: number, this: boolean }[]} devices */
  #devices(devices) {
    const rows = devices.map((one) => {
      const name = one.name || 'A browser';
      const out = el('button', { type: 'button', class: 'plain', 'aria-label': `Sign out ${name}` }, 'Sign out');
      out.addEventListener('click', () => this.#ask({ type: 'sign_out', device: one.device }));
      return el('li', {}, el('span', { class: 'chat-name' }, name), el('span', { class: 'soft' }, one.this ? 'this one' : dayWords(one.seen_at)), !one.this && out);
    });
    const more = el('button', { type: 'button', class: 'plain' }, 'Link for another device');
    more.addEventListener('click', () => this.#ask({ type: 'invite_device' }));
    return el('div', {}, el('h3', {}, 'Your devices'), el('ul', { class: 'chat-list' }, ...rows), more);
  }

  /** @param {Frame} frame `invitation` */
  #showLink({ invitation }) {
    const link = `${location.origin}/#invitation=${encodeURIComponent(invitation)}`;
    const field = el('input', { class: 'field', readonly: true, 'aria-label': 'Link for another device', value: link });
    this.link.replaceChildren(el('p', {}, 'Open this link on the other device within an hour. It counts once.'), field, copyButton('Copy the link', () => link));
    this.link.hidden = false;
    field.select();
  }

  #onDevice() {
    const theme = choice('theme-choice', THEMES, read('theme') ?? '', chooseTheme);
    const button = byId('read-aloud');
    const aloud = check('Read answers aloud in a conversation by voice', button.getAttribute('aria-pressed') === 'true', () => {
      button.click();
      return true;
    });
    const notify = check('Notify me of an answer while this page is hidden', read('notify') === 'yes', async (on) => {
      const granted = on && 'Notification' in window && (await Notification.requestPermission()) === 'granted';
      write('notify', granted ? 'yes' : null);
      if (on && !granted) this.panel.say('The browser does not allow notifications for this page. Allow them in its settings.');
      return granted === on;
    });
    return el('div', { class: 'settings-part' }, el('h3', {}, 'This device'), el('label', { for: 'theme-choice' }, 'Theme'), theme, !button.hidden && aloud, notify);
  }
}

/**
 * A list to choose from.
 *
 * @param {string} id
 * @param {Record<string, string>} options the words by value
 * @param {string} chosen
 * @param {(value: string) => void} onChange
 */
function choice(id, options, chosen, onChange) {
  const list = el('select', { id, class: 'field' }, ...Object.entries(options).map(([value, words]) => el('option', { value, selected: value === chosen }, words)));
  list.addEventListener('change', () => onChange(list.value));
  return list;
}

/**
 * A labelled checkbox.
 *
 * @param {string} words
 * @param {boolean} on
 * @param {(on: boolean) => boolean | Promise<boolean>} onChange false takes the change back
 */
function check(words, on, onChange) {
  const box = el('input', { type: 'checkbox', checked: on });
  box.addEventListener('change', async () => {
    const wanted = box.checked;
    if (!(await onChange(wanted))) box.checked = !wanted;
  });
  return el('label', { class: 'check' }, box, words);
}
