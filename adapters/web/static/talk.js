/**
 * The Talk control: a voice conversation, hands-free or with the microphone button held. It opens and
 * closes the gateway's live session, and shows whose turn it is. heard.js shows the transcript.
 *
 * @module talk
 */

import { byId } from './dom.js';
import { LiveMicrophone } from './microphone.js';
import { newClientId } from './outbox.js';
import { RecorderError } from './recorder.js';
import { audioConstraints, read, write } from './settings.js';
import { t } from './texts.js';

/**
 * @typedef {object} TalkOptions
 * @property {import('./connection.js').Connection} connection
 * @property {() => boolean} thinking an answer is being made
 * @property {() => boolean} speaking an answer is being played
 * @property {() => void} onVoice the user begins to speak: stops all playback
 * @property {(words: string) => void} onTrouble words for the person
 * @property {() => void} onToggle it was switched on or off, or its mode changed
 *
 * @typedef {'opening' | 'reconnecting' | 'listening' | 'hearing' | 'thinking' | 'speaking' | 'waiting'} State
 */

/** Frames from before the press that are sent with it: people speak before they press. */
const PRE_ROLL = 4;
const METER_MS = 80;

export class Talk {
  /** @param {TalkOptions} options */
  constructor(options) {
    this.options = options;
    /** @type {HTMLButtonElement} */
    this.button = byId('talk');
    this.bar = byId('talk-bar');
    this.words = byId('talk-words');
    this.level = byId('talk-level');
    /** @type {HTMLButtonElement} */
    this.manner = byId('talk-manner');
    /** @type {HTMLButtonElement} */
    this.mic = byId('mic');
    /** Whether the person wants to talk. */
    this.on = false;
    this.handsFree = read('handsFree') !== 'no';
    this.held = false;
    /** The button was released; the present frame is the last. */
    this.releasing = false;
    this.hearing = false;
    /** Whether there is speech that is not a message yet. */
    this.pending = false;
    /** @type {LiveMicrophone | null} */
    this.microphone = null;
    /** @type {'closed' | 'opening' | 'open' | 'closing'} */
    this.session = 'closed';
    this.sessionHandsFree = true;
    this.clientId = '';
    /** @type {ArrayBuffer[]} */
    this.early = [];
    this.timer = 0;
    this.#wire();
    this.refresh();
  }

  async start() {
    if (this.on) return;
    this.on = true;
    this.options.onTrouble('');
    this.options.onToggle();
    this.refresh();
    try {
      const microphone = await LiveMicrophone.open(audioConstraints(), {
        onSound: (frame) => this.#take(frame),
        onEnd: () => this.end(t('talk.microphone_gone')),
      });
      if (!this.on || this.microphone) microphone.close();
      else this.microphone = microphone;
    } catch (error) {
      if (!(error instanceof RecorderError)) throw error;
      if (this.on) this.end(error.message);
    }
    this.#reconcile();
  }

  /** @param {string} [why] words for the person */
  end(why = '') {
    this.microphone?.close();
    this.microphone = null;
    Object.assign(this, { on: false, held: false, releasing: false, hearing: false, pending: false, early: [] });
    if (why) this.options.onTrouble(why);
    this.options.onToggle();
    this.#reconcile();
  }

  /** The connection's state changed. */
  link() {
    if (this.options.connection.state !== 'ready') {
      this.session = 'closed';
      this.hearing = false;
      this.pending = false;
    }
    this.#reconcile();
  }

  /** @param {import('./connection.js').Frame} frame `live_ready`, `live` or `live_ended` */
  frame(frame) {
    if (frame.type === 'live_ready') this.session = 'open';
    else if (frame.type === 'live_ended') this.#ended(frame);
    else this.#event(frame.event);
    this.#reconcile();
  }

  /** @param {import('./connection.js').Frame} problem @returns {boolean} whether it was about live speech */
  problem({ code, message, client_id: clientId }) {
    // Both arrived after the session's end, which the gateway has already sent.
    if (code === 'not_listening' || code === 'bad_audio') return true;
    if (!clientId || clientId !== this.clientId) return false;
    this.session = 'closed';
    this.end(message);
    return true;
  }

  /** Shows the present state. */
  refresh() {
    const state = this.#state();
    document.body.classList.toggle('is-talking', this.on);
    document.body.classList.toggle('is-hands-free', this.on && this.handsFree);
    this.bar.hidden = !this.on;
    this.bar.dataset.state = state;
    const words = t(state === 'reconnecting' ? 'link.waiting' : `talk.${state}`);
    if (this.words.textContent !== words) this.words.textContent = words;
    this.button.setAttribute('aria-pressed', String(this.on));
    const label = this.on ? t('talk.end') : t('talk.start');
    this.button.setAttribute('aria-label', label);
    this.button.title = label;
    this.manner.setAttribute('aria-pressed', String(this.handsFree));
    if (this.on && !this.handsFree) {
      this.mic.setAttribute('aria-label', t('talk.hold'));
      this.mic.title = t('talk.hold_title');
      this.mic.setAttribute('aria-pressed', String(this.held));
    }
    this.#meter();
  }

  /** @returns {State} */
  #state() {
    if (!this.microphone) return 'opening';
    if (this.session !== 'open') return this.options.connection.state === 'ready' ? 'opening' : 'reconnecting';
    if (this.hearing || this.held) return 'hearing';
    if (this.options.speaking()) return 'speaking';
    if (this.pending || this.options.thinking()) return 'thinking';
    return this.handsFree ? 'listening' : 'waiting';
  }

  /** Moves the gateway's session to the wanted state, one step at a time. */
  #reconcile() {
    const { connection } = this.options;
    const wanted = this.on && this.microphone !== null;
    if (connection.state === 'ready') {
      if (this.session === 'closed' && wanted) {
        this.clientId = newClientId();
        this.sessionHandsFree = this.handsFree;
        const frame = { type: 'live_start', client_id: this.clientId, hands_free: this.handsFree };
        if (connection.send(frame)) this.session = 'opening';
      } else if (this.session === 'open' && (!wanted || this.sessionHandsFree !== this.handsFree)) {
        if (connection.send({ type: 'live_stop' })) this.session = 'closing';
      }
    }
    this.refresh();
  }

  /** @param {import('./connection.js').Frame} frame `live_ended` */
  #ended({ reason, message }) {
    this.session = 'closed';
    this.hearing = false;
    this.pending = false;
    if (reason !== 'stopped') this.end(message);
  }

  /** @param {Record<string, any>} event of live speech */
  #event({ type, message }) {
    if (type === 'speech_started') this.options.onVoice();
    if (type === 'speech_dropped' && message) this.options.onTrouble(message);
    if (type === 'speech_partial') return;
    const begun = type === 'speech_started';
    const over = type === 'speech_final' || type === 'speech_dropped';
    this.hearing = begun && this.on && (this.sessionHandsFree || this.held);
    // Hands-free the gateway's session stays open, because more may follow.
    this.pending = !over && !this.hearing && !this.sessionHandsFree;
  }

  /** @param {ArrayBuffer} frame */
  #take(frame) {
    const { connection } = this.options;
    const live = this.session === 'opening' || this.session === 'open';
    if (live && (this.sessionHandsFree || this.held || this.releasing)) {
      connection.sendSound(frame);
    } else {
      this.early = [...this.early, frame].slice(-PRE_ROLL);
    }
    if (!this.releasing) return;
    this.releasing = false;
    connection.send({ type: 'live_finish' });
  }

  #press() {
    if (this.held || this.session !== 'open') return;
    this.held = true;
    this.releasing = false;
    this.options.onVoice();
    for (const frame of this.early) this.options.connection.sendSound(frame);
    this.early = [];
    this.refresh();
  }

  #release() {
    if (!this.held) return;
    this.held = false;
    this.releasing = true;
    // A press without speech has no result, and the gateway sends no event.
    this.pending ||= this.hearing;
    this.hearing = false;
    this.refresh();
  }

  #wire() {
    this.button.addEventListener('click', () => {
      if (this.on) this.end();
      else void this.start();
    });
    this.manner.addEventListener('click', () => {
      this.handsFree = !this.handsFree;
      write('handsFree', this.handsFree ? null : 'no');
      this.#release();
      this.options.onToggle();
      this.#reconcile();
    });
    const pushing = () => this.on && !this.handsFree;
    this.mic.addEventListener('pointerdown', (event) => {
      if (!pushing() || event.button !== 0) return;
      this.mic.setPointerCapture(event.pointerId);
      this.#press();
    });
    for (const name of ['pointerup', 'pointercancel']) this.mic.addEventListener(name, () => this.#release());
    document.addEventListener('keydown', (event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (!pushing() || event.key !== ' ' || event.isComposing) return;
      if (target !== this.mic && target.closest('input, textarea, button, a, audio, summary')) return;
      event.preventDefault();
      if (!event.repeat) this.#press();
    });
    document.addEventListener('keyup', (event) => {
      if (event.key === ' ') this.#release();
    });
    window.addEventListener('blur', () => this.#release());
  }

  #meter() {
    if (this.on && !this.timer) {
      this.timer = setInterval(() => {
        this.level.style.transform = `scaleX(${Math.max(0.04, this.microphone?.level ?? 0)})`;
      }, METER_MS);
    } else if (!this.on) {
      clearInterval(this.timer);
      this.timer = 0;
    }
  }
}
