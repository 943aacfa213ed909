/**
 * Answers read aloud: asks the gateway for the sound of one, and puts a player under it. It does not decide
 * when; spoken.js and the Listen button do.
 *
 * @module reader
 */

import { el } from './dom.js';
import { newClientId } from './outbox.js';

/** @typedef {import('./items.js').Item} Item */

/** So many players stay on the page; an older answer can be asked for again. */
const KEPT = 8;

export class Reader {
  /**
   * @param {{ store: import('./store.js').ConversationStore, send: (frame: import('./connection.js').Frame) => boolean,
   *   onTrouble: (words: string) => void, onChange: () => void }} options `onChange`: it begins or ends to play
   */
  constructor(options) {
    this.options = options;
    /** @type {{ clientId: string, item: Item, play: boolean, size: number, mime: string } | null} */
    this.asking = null;
    /** @type {Item | null} asked for meanwhile; the gateway reads one at a time */
    this.next = null;
    /** @type {Item[]} those with a player, oldest first */
    this.shown = [];
    /** @type {HTMLAudioElement | null} */
    this.audio = null;
  }

  get playing() {
    return this.audio !== null;
  }

  /** Reads `item`, a finished answer, and plays it when its sound is here. @param {Item} item */
  listen(item) {
    if (this.asking) {
      if (this.asking.item !== item) this.next = item;
      return;
    }
    const clientId = newClientId();
    if (!this.options.send({ type: 'speak', client_id: clientId, entry_id: item.entryId })) {
      this.options.onTrouble('Not connected just now. Try again when the connection is back.');
      return;
    }
    this.asking = { clientId, item, play: true, size: 0, mime: '' };
    this.#update(item, { reading: true });
  }

  /** Falls silent, and stays so until the next is asked for. */
  stop() {
    this.next = null;
    if (this.asking) this.asking.play = false;
    this.audio?.pause();
  }

  /** The line is gone: what was asked for on it does not come. */
  interrupted() {
    this.next = null;
    this.#asked();
  }

  /** @param {import('./connection.js').Frame} frame `speech`: its sound comes next */
  header({ client_id: clientId, mime, size }) {
    if (this.asking?.clientId === clientId) Object.assign(this.asking, { mime, size });
  }

  /** @param {ArrayBuffer} sound */
  sound(sound) {
    const asking = this.asking;
    if (!asking || sound.byteLength !== asking.size) return;
    const audio = el('audio', { controls: true, preload: 'auto', 'aria-label': 'The answer, read aloud' });
    audio.src = URL.createObjectURL(new Blob([sound], { type: asking.mime }));
    this.#follow(audio);
    this.#update(asking.item, { player: audio });
    this.shown.push(asking.item);
    if (this.shown.length > KEPT) this.#discard(/** @type {Item} */ (this.shown.shift()));
    // A browser that does not let a page begin to play by itself still shows the player.
    if (asking.play) audio.play().catch(() => this.options.onChange());
    this.#asked();
  }

  /** @param {import('./connection.js').Frame} problem @returns {boolean} whether it was about reading aloud */
  problem({ client_id: clientId, message }) {
    if (!this.asking || this.asking.clientId !== clientId) return false;
    this.options.onTrouble(`This answer cannot be read aloud: ${message}`);
    this.#asked();
    return true;
  }

  #asked() {
    const item = this.asking?.item;
    this.asking = null;
    if (item) this.#update(item, { reading: false });
    const next = this.next;
    this.next = null;
    if (next) this.listen(next);
  }

  /** @param {HTMLAudioElement} audio */
  #follow(audio) {
    audio.addEventListener('play', () => {
      if (this.audio !== audio) this.audio?.pause();
      this.audio = audio;
      this.options.onChange();
    });
    const ended = () => {
      if (this.audio === audio) this.audio = null;
      this.options.onChange();
    };
    audio.addEventListener('pause', ended);
    audio.addEventListener('ended', ended);
    audio.addEventListener('error', () => {
      ended();
      if (audio.isConnected) this.options.onTrouble('This browser cannot play the sound of the answer.');
    });
  }

  /** @param {Item} item */
  #discard(item) {
    const audio = /** @type {HTMLAudioElement} */ (item.player);
    audio.pause();
    URL.revokeObjectURL(audio.src);
    this.#update(item, { player: null });
  }

  /** @param {Item} item @param {Partial<Item>} fields */
  #update(item, fields) {
    if (this.options.store.items.has(item.uid)) this.options.store.update(item, fields);
  }
}
