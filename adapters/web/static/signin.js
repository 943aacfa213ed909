/**
 * The card that asks for the access token. The token comes from the person, from the browser's storage or
 * from a link (`#token=…`), whose fragment is removed from the address bar at once and never sent to a server. It
 * is stored only after the gateway has accepted it. With an invitation (`#invitation=…`) the browser makes a token
 * itself, and stores it before it is sent: a lost answer is repeated with the same token.
 *
 * @module signin
 */

import { byId } from './dom.js';
import { read, readJson, write } from './settings.js';
import { t } from './texts.js';

const WRONG = 4401;
export const SIGNED_OUT = 4403;
const TOO_MANY = 4429;

/** @param {'token' | 'invitation'} name @returns {string} the secret of the page's link, removed from the address */
function takeLinked(name) {
  const linked = new RegExp(`^#${name}=([^&]+)$`).exec(location.hash);
  if (!linked) return '';
  history.replaceState(null, '', location.pathname);
  try {
    return decodeURIComponent(linked[1]).trim();
  } catch {
    return '';
  }
}

/** @returns {string} 256 random bits */
function newToken() {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replace('=', '');
}

/** @returns {string} such as `Firefox on Linux` */
function deviceName() {
  const of = (/** @type {Record<string, string>} */ names) =>
    Object.entries(names).find(([sign]) => navigator.userAgent.includes(sign))?.[1];
  const browser = of({ Firefox: 'Firefox', 'Edg/': 'Edge', 'OPR/': 'Opera', Chrome: 'Chrome', Safari: 'Safari' });
  const system = of({ Android: 'Android', iPhone: 'iPhone', iPad: 'iPad', Windows: 'Windows', CrOS: 'ChromeOS', Mac: 'Mac', Linux: 'Linux' });
  const name = browser ?? t('signin.browser');
  return system ? t('signin.device', { browser: name, system }) : name;
}

export class SignIn {
  /**
   * @param {() => void} onToken a token was entered and should be tried
   * @param {(words: string) => void} tell shows a text to a person who is signed in
   */
  constructor(onToken, tell) {
    this.tell = tell;
    this.card = byId('signin');
    this.app = byId('app');
    // From here on this class decides which of the two is shown (theme.js).
    delete document.documentElement.dataset.first;
    /** @type {HTMLInputElement} */
    this.input = byId('token');
    this.message = byId('signin-message');
    this.button = byId('signin-button');
    this.token = read('token') ?? '';
    /** Whether the gateway has accepted this token before. */
    this.proven = this.token !== '';
    /** The token replaced by a link's, until the gateway has accepted that one. */
    this.former = '';
    /** The code of the invitation that is being redeemed with `token`. */
    this.invitation = '';
    /** The code of a link whose use the person has not confirmed yet. */
    this.offered = '';
    this.#resume();
    this.#useLinked();
    window.addEventListener('hashchange', () => {
      if (this.#useLinked()) onToken();
      else if (this.offered) this.show();
    });
    byId('signin-stay').addEventListener('click', () => {
      this.offered = '';
      this.card.hidden = true;
      this.app.hidden = false;
      if (this.token) onToken();
    });
    byId('signin-form').addEventListener('submit', (/** @type {Event} */ event) => {
      event.preventDefault();
      if (this.offered) {
        this.#join();
        onToken();
        return;
      }
      const entered = this.input.value.trim();
      if (!entered) {
        this.say(t('signin.empty'));
        this.input.focus();
        return;
      }
      this.token = entered;
      this.former = '';
      this.proven = false;
      this.say('');
      this.#busy(true);
      onToken();
    });
  }

  /** @returns {object} what `hello` says about who this is */
  get hello() {
    return this.invitation ? { token: this.token, invitation: this.invitation, device: deviceName() } : { token: this.token };
  }

  /** The person has confirmed the invitation. */
  #join() {
    this.former = this.proven ? this.token : '';
    this.token = newToken();
    this.invitation = this.offered;
    this.offered = '';
    this.proven = false;
    write('joining', JSON.stringify({ token: this.token, invitation: this.invitation }));
    this.say('');
    this.#busy(true);
  }

  /** Continues with an invitation whose answer did not arrive. */
  #resume() {
    const kept = readJson('joining', { token: '', invitation: '' });
    if (!kept.token || !kept.invitation) return;
    this.former = this.token;
    this.token = kept.token;
    this.invitation = kept.invitation;
    this.proven = false;
  }

  get open() {
    return !this.card.hidden;
  }

  /** @param {string} [words] why the card is shown */
  show(words = '') {
    this.card.hidden = false;
    this.app.hidden = true;
    byId('signin-form').dataset.invited = this.offered ? 'yes' : '';
    byId('signin-title').textContent = this.offered ? t('signin.invited') : t('signin.title');
    byId('signin-lead').textContent = !this.offered ? t('signin.lead') : this.token ? t('signin.replace_lead') : t('signin.invited_lead');
    byId('signin-stay').hidden = !this.offered || !this.token;
    this.#busy(false);
    this.say(words);
    if (this.offered) this.button.focus();
    else this.input.focus();
    this.input.select();
  }

  /** The gateway accepted the token. */
  accept() {
    this.proven = true;
    this.former = '';
    this.invitation = '';
    write('token', this.token);
    write('joining', null);
    this.#busy(false);
    this.input.value = '';
    this.card.hidden = true;
    this.app.hidden = false;
  }

  /**
   * The gateway has closed the connection.
   *
   * @param {number} code @param {string} why in the gateway's words, or empty
   * @returns {'retry' | 'stop' | number} what to do next; a number is a pause in ms
   */
  closed(code, why) {
    if (code === SIGNED_OUT) {
      this.forget();
      this.show(t('signin.signed_out'));
      return 'stop';
    }
    if (code === WRONG && this.invitation) {
      this.invitation = '';
      write('joining', null);
      if (this.#restore(t('signin.used'))) return 0;
      this.forget();
      this.show(t('signin.used'));
      return 'stop';
    }
    if (code === WRONG || code === TOO_MANY) {
      if (this.#restore(t('signin.link'))) return 0;
      const stale = this.proven;
      this.forget();
      this.show(code === TOO_MANY ? t('signin.many') : stale ? t('signin.stale') : t('signin.wrong'));
      return 'stop';
    }
    if (this.proven) return 'retry';
    this.show(why || t('signin.unreachable'));
    return 'stop';
  }

  /** A link was rejected: restores the token that this browser had. @param {string} why @returns {boolean} whether there is one */
  #restore(why) {
    if (!this.former) return false;
    this.token = this.former;
    this.former = '';
    this.proven = true;
    this.card.hidden = true;
    this.app.hidden = false;
    this.tell(t('signin.still', { why }));
    return true;
  }

  /** @returns {boolean} whether the address had a token, which is the one to try now */
  #useLinked() {
    this.offered = takeLinked('invitation') || this.offered;
    const linked = takeLinked('token');
    if (!linked || linked === this.token) return false;
    this.former = this.proven ? this.token : '';
    this.token = linked;
    this.proven = false;
    return true;
  }

  /** Forgets the token here and in every tab. */
  forget() {
    this.token = '';
    this.proven = false;
    write('token', null);
  }

  /** @param {string} words */
  say(words) {
    this.message.textContent = words;
    this.message.hidden = !words;
    this.input.setAttribute('aria-invalid', String(Boolean(words)));
  }

  /** @param {boolean} busy */
  #busy(busy) {
    this.button.disabled = busy;
    this.button.textContent = busy ? t('link.connecting') : this.offered ? t('signin.join') : t('signin.button');
  }
}
