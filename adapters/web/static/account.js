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
import { language, languages, t } from './texts.js';
import { dayWords } from './times.js';

/** @typedef {import('./connection.js').Frame} Frame */

/** The cookie with the chosen language: the gateway needs it before the page is there. */
const LANGUAGE_COOKIE = 'parlour_language';

const THEMES = { '': t('settings.theme_system'), light: t('settings.theme_light'), dark: t('settings.theme_dark') };
const VOICE = { off: t('settings.voice_off'), auto: t('settings.voice_auto'), on: t('settings.voice_on') };

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
    this.panel = new Panel('settings', t('settings.title'), t('settings.close'), () => this.#opened());
    this.person = el('div', { class: 'settings-part' });
    this.voice = el('div', { class: 'settings-part' });
    this.link = el('div', { class: 'settings-part', hidden: true });
    const out = el('button', { type: 'button', class: 'plain danger-text', 'data-testid': 'sign-out' }, t('settings.sign_out_here'));
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
    else this.panel.say(t('not_connected'));
  }

  /** @param {Frame} account */
  #draw({ person, name, devices, voice_replies: voiceReplies }) {
    this.own = devices.find((/** @type {any} */ one) => one.this)?.device ?? '';
    const voice = choice('voice-choice', VOICE, voiceReplies, (mode) =>
      this.send({ type: 'command', client_id: newClientId(), name: 'voice', argument: mode }));
    this.person.replaceChildren(...(person ? [this.#name(name), this.#devices(devices)] : [el('p', { class: 'soft' }, t('settings.owner'))]));
    this.voice.replaceChildren(el('label', { for: 'voice-choice' }, t('settings.voice')), voice);
  }

  /** @param {string} name */
  #name(name) {
    const input = el('input', { id: 'person-name', class: 'field', value: name, maxlength: 60, dir: 'auto', autocomplete: 'nickname' });
    const form = el('form', { class: 'chat-form' }, el('label', { for: 'person-name' }, t('settings.name')), input, el('button', { class: 'primary' }, t('save')));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#ask({ type: 'rename_person', name: input.value.trim() || ' ' });
    });
    return form;
  }

  /** @param {{ device: string, name: string, seen_at: number, this: boolean }[]} devices */
  #devices(devices) {
    const rows = devices.map((one) => {
      const name = one.name || t('settings.a_browser');
      const out = el('button', { type: 'button', class: 'plain', 'aria-label': t('settings.sign_out_device', { name }) }, t('settings.sign_out'));
      out.addEventListener('click', () => this.#ask({ type: 'sign_out', device: one.device }));
      return el('li', {}, el('span', { class: 'chat-name' }, name), el('span', { class: 'soft' }, one.this ? t('settings.this_one') : dayWords(one.seen_at)), !one.this && out);
    });
    const more = el('button', { type: 'button', class: 'plain' }, t('settings.link'));
    more.addEventListener('click', () => this.#ask({ type: 'invite_device' }));
    return el('div', {}, el('h3', {}, t('settings.devices')), el('ul', { class: 'chat-list' }, ...rows), more);
  }

  /** @param {Frame} frame `invitation` */
  #showLink({ invitation }) {
    const link = `${location.origin}/#invitation=${encodeURIComponent(invitation)}`;
    const field = el('input', { class: 'field', readonly: true, 'aria-label': t('settings.link'), value: link });
    this.link.replaceChildren(el('p', {}, t('settings.link_words')), field, copyButton(t('settings.copy_link'), () => link));
    this.link.hidden = false;
    field.select();
  }

  #onDevice() {
    const chosen = document.cookie.includes(`${LANGUAGE_COOKIE}=`) ? language : '';
    const spoken = choice('language-choice', { '': t('settings.language_auto'), ...Object.fromEntries(languages) }, chosen, chooseLanguage);
    const theme = choice('theme-choice', THEMES, read('theme') ?? '', chooseTheme);
    const button = byId('read-aloud');
    const aloud = check(t('settings.read_aloud'), button.getAttribute('aria-pressed') === 'true', () => {
      button.click();
      return true;
    });
    const notify = check(t('settings.notify'), read('notify') === 'yes', async (on) => {
      const granted = on && 'Notification' in window && (await Notification.requestPermission()) === 'granted';
      write('notify', granted ? 'yes' : null);
      if (on && !granted) this.panel.say(t('settings.notify_blocked'));
      return granted === on;
    });
    return el('div', { class: 'settings-part' }, el('h3', {}, t('settings.device')), el('label', { for: 'language-choice' }, t('settings.language')), spoken, el('label', { for: 'theme-choice' }, t('settings.theme')), theme, !button.hidden && aloud, notify);
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

/** Shows the page again in this language. @param {string} tag empty for the browser's */
function chooseLanguage(tag) {
  document.cookie = `${LANGUAGE_COOKIE}=${tag}; path=/; samesite=lax; max-age=${tag ? 31_536_000 : 0}`;
  location.reload();
}
