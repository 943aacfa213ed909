/**
 * The microphone button and the recording bar: tap to start and tap to send, or hold while
 * speaking; slide away or Esc to cancel. It passes finished recordings on and keeps none.
 *
 * @module voice
 */

import { byId, el } from './dom.js';
import { audioConstraints } from './settings.js';
import { measure, t } from './texts.js';
import { clock } from './times.js';

/**
 * @typedef {object} VoiceOptions
 * @property {() => { voice_bytes: number, voice_seconds: number }} limits
 * @property {() => boolean} taken the button has another function now
 * @property {(recording: import('./recorder.js').Recording) => void} onRecording
 * @property {(words: string) => void} onTrouble words for the person
 * @property {(words: string) => void} onStatus words for a screen reader
 */

const HOLD_MS = 450;
const SLIDE_AWAY_PX = 90;
const SHORTEST_S = 0.5;
const BARS = 64;

export class VoiceButton {
  /** @param {VoiceOptions} options */
  constructor(options) {
    this.options = options;
    /** @type {HTMLButtonElement} */
    this.button = byId('mic');
    this.bar = byId('recording');
    this.timer = byId('recording-time');
    this.meter = byId('recording-meter');
    this.hint = byId('recording-hint');
    /** @type {import('./recorder.js').Recorder | null} */
    this.recorder = null;
    this.starting = false;
    /** What to do after a running start: the button was released meanwhile. */
    this.abandoned = false;
    this.pressedAt = 0;
    this.frame = 0;
    /** @type {number[]} */
    this.levels = new Array(BARS).fill(0);
    this.meter.append(...this.levels.map(() => el('span')));
    this.#wire();
  }

  get recording() {
    return this.recorder !== null;
  }

  async start() {
    if (this.starting || this.recorder) return;
    this.starting = true;
    this.abandoned = false;
    this.options.onTrouble('');
    this.button.dataset.state = 'starting';
    const module = await import('./recorder.js').catch(() => null);
    try {
      const recorder = await module?.Recorder.start(audioConstraints(), () => void this.finish());
      if (!recorder) {
        this.options.onTrouble(t('not_loaded'));
      } else if (this.abandoned) {
        recorder.cancel();
        this.options.onTrouble(t('voice.ready'));
      } else {
        this.#begin(recorder);
      }
    } catch (error) {
      if (!module || !(error instanceof module.RecorderError)) throw error;
      this.options.onTrouble(error.message);
    } finally {
      this.starting = false;
      if (!this.recorder) this.#show(false);
    }
  }

  /** Ends the recording and passes it on. */
  async finish() {
    const recorder = this.recorder;
    if (!recorder) return;
    this.recorder = null;
    this.#show(false);
    const recording = await recorder.stop();
    const { voice_bytes: most } = this.options.limits();
    if (recording.seconds < SHORTEST_S || recording.blob.size === 0) {
      this.options.onTrouble(t('voice.short'));
    } else if (recording.blob.size > most) {
      this.options.onTrouble(t('voice.too_large', { size: megabytes(recording.blob.size), most: megabytes(most) }));
    } else {
      this.options.onRecording(recording);
    }
  }

  /** Updates the button, whose function another part may have changed meanwhile. */
  refresh() {
    this.#show(this.recording);
  }

  cancel() {
    if (this.starting) this.abandoned = true;
    if (!this.recorder) return;
    this.recorder.cancel();
    this.recorder = null;
    this.#show(false);
    this.options.onStatus(t('voice.cancelled'));
  }

  #wire() {
    const button = this.button;
    button.addEventListener('pointerdown', (event) => {
      if (event.button !== 0 || this.recorder || this.starting || this.options.taken()) return;
      this.pressedAt = performance.now();
      button.setPointerCapture(event.pointerId);
      void this.start();
    });
    button.addEventListener('pointerup', (event) => {
      const held = this.pressedAt ? performance.now() - this.pressedAt : 0;
      if (held < HOLD_MS) return;
      const box = button.getBoundingClientRect();
      const away = Math.hypot(event.clientX - box.x - box.width / 2, event.clientY - box.y - box.height / 2);
      if (this.starting || away > SLIDE_AWAY_PX) this.cancel();
      else void this.finish();
    });
    button.addEventListener('pointercancel', () => this.cancel());
    button.addEventListener('contextmenu', (event) => event.preventDefault());
    button.addEventListener('click', (event) => {
      // A press has already started or ended the recording; taps and the keyboard remain.
      const byPointer = event.detail !== 0 && this.pressedAt > 0;
      this.pressedAt = 0;
      if (byPointer || this.options.taken()) return;
      if (this.recorder) void this.finish();
      else void this.start();
    });
    byId('recording-cancel').addEventListener('click', () => {
      this.cancel();
      button.focus();
    });
  }

  /** @param {import('./recorder.js').Recorder} recorder */
  #begin(recorder) {
    this.recorder = recorder;
    this.levels.fill(0);
    this.#show(true);
    this.options.onStatus(t('voice.recording'));
    let lastBar = 0;
    const draw = () => {
      if (this.recorder !== recorder) return;
      const now = performance.now();
      const { voice_seconds: longest, voice_bytes: most } = this.options.limits();
      if (now - lastBar > 70) {
        lastBar = now;
        this.#drawLevel(recorder.level());
      }
      this.timer.textContent = `${clock(recorder.seconds)} / ${clock(longest)}`;
      if (recorder.seconds >= longest || recorder.bytes >= most) {
        this.options.onTrouble(t('voice.longest', { time: clock(longest) }));
        void this.finish();
      }
    };
    draw();
    // A timer, not animation frames: a hidden tab must stop at the limit, too.
    clearInterval(this.frame);
    this.frame = setInterval(draw, 50);
  }

  /** @param {number} level */
  #drawLevel(level) {
    this.levels.shift();
    this.levels.push(level);
    [...this.meter.children].forEach((bar, index) => {
      bar.style.transform = `scaleY(${Math.max(0.08, this.levels[index])})`;
    });
  }

  /** @param {boolean} on */
  #show(on) {
    clearInterval(this.frame);
    this.bar.hidden = !on;
    document.body.classList.toggle('is-recording', on);
    this.button.dataset.state = on ? 'recording' : 'idle';
    this.button.setAttribute('aria-pressed', String(on));
    const label = on ? t('voice.send') : t('voice.record');
    this.button.setAttribute('aria-label', label);
    this.button.title = on ? label : t('voice.record_title');
  }
}

/** @param {number} bytes */
function megabytes(bytes) {
  return measure('megabyte', bytes / 1_048_576, 1);
}
