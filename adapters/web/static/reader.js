/**
 * Answers read aloud: requests the audio of one, part by part, and adds a player below it, which
 * starts with the first sentence, also while the answer is still being written. It does not decide when:
 * spoken.js and the Listen button do.
 *
 * @module reader
 */

import { el } from './dom.js';
import { newClientId } from './outbox.js';
import { t } from './texts.js';

/** @typedef {import('./items.js').Item} Item */

/** The most players on the page; an older answer can be requested again. */
const KEPT = 8;

/** The parts of one answer, played one after the other by one player. */
class Playlist {
  /** @param {HTMLAudioElement} audio @param {string} url the first part's @param {() => void} onEnd it is through */
  constructor(audio, url, onEnd) {
    this.audio = audio;
    this.onEnd = onEnd;
    this.urls = [url];
    this.at = 0;
    /** The player has played all parts so far, and continues when another arrives. */
    this.waiting = false;
    this.isComplete = false;
    audio.src = url;
  }

  /** @param {string} url the next part's */
  add(url) {
    this.urls.push(url);
    if (!this.waiting) return;
    this.waiting = false;
    this.next();
  }

  /** No part follows. */
  complete() {
    this.isComplete = true;
    if (this.waiting) this.next();
  }

  /** It must not continue automatically. */
  stop() {
    this.waiting = false;
  }

  /** A part has ended. */
  next() {
    if (this.at + 1 < this.urls.length) {
      this.#play(this.at + 1);
      return;
    }
    this.waiting = !this.isComplete;
    if (this.waiting) return;
    // Playing it again begins at the beginning.
    if (this.at > 0) {
      this.at = 0;
      this.audio.src = this.urls[0];
    }
    this.onEnd();
  }

  discard() {
    for (const url of this.urls) URL.revokeObjectURL(url);
  }

  /** @param {number} part */
  #play(part) {
    this.at = part;
    this.audio.src = this.urls[part];
    this.audio.play().catch(() => {});
  }
}

export class Reader {
  /**
   * @param {{ store: import('./store.js').ConversationStore, send: (frame: import('./connection.js').Frame) => boolean,
   *   onTrouble: (words: string) => void, onChange: () => void }} options `onChange`: it starts or stops playing
   */
  constructor(options) {
    this.options = options;
    /**
     * `playlist` is null until the first part is here. `along`: the answer was in progress when its first
     * part was asked for, and its message names it; how many `parts` it has shows at its end.
     *
     * @type {{ clientId: string, item: Item, along: boolean, play: boolean, part: number, parts: number, size: number,
     *   mime: string, playlist: Playlist | null } | null}
     */
    this.asking = null;
    /** @type {Item | null} requested meanwhile; the gateway reads one at a time */
    this.next = null;
    /** @type {Item[]} those with a player, oldest first */
    this.shown = [];
    /** @type {HTMLAudioElement | null} */
    this.audio = null;
    /** @type {WeakMap<HTMLAudioElement, Playlist>} */
    this.playlists = new WeakMap();
  }

  get playing() {
    return this.audio !== null;
  }

  /** Reads `item`, an answer that is finished or being written, and plays it when its sound is here. @param {Item} item */
  listen(item) {
    if (this.asking) {
      if (this.asking.item !== item) this.next = item;
      return;
    }
    const along = item.streaming;
    this.asking = { clientId: '', item, along, play: true, part: 0, parts: along ? Infinity : 1, size: 0, mime: '', playlist: null };
    if (!this.#ask()) {
      this.asking = null;
      this.options.onTrouble(t('not_connected'));
      return;
    }
    this.#update(item, { reading: true });
  }

  /** Stops playing until the next request. */
  stop() {
    this.next = null;
    if (this.asking?.along) {
      this.options.send({ type: 'speak_stop' });
      this.#drop();
    } else if (this.asking) {
      this.asking.play = false;
      this.asking.playlist?.stop();
    }
    const { audio } = this;
    audio?.pause();
    // A player that waits for its next part is not playing, so it sends no pause event.
    if (audio) this.#ended(audio);
  }

  /** A message ended without an answer: removes the player of its unfinished answer. @param {string} messageId */
  failed(messageId) {
    if (this.next?.messageId === messageId) this.next = null;
    if (this.asking?.item.messageId === messageId) this.stop();
  }

  /** The connection is lost: its requests will not be answered. */
  interrupted() {
    this.next = null;
    if (this.asking?.along) this.#drop();
    else this.#asked();
  }

  /** @param {import('./connection.js').Frame} frame `speech`: its audio follows */
  header({ client_id: clientId, mime, size, parts = 1 }) {
    if (this.asking?.clientId !== clientId) return;
    Object.assign(this.asking, { mime, size });
    if (!this.asking.along) this.asking.parts = parts;
  }

  /** @param {import('./connection.js').Frame} frame `speech_ended`: no part follows */
  ended({ client_id: clientId, reason }) {
    if (this.asking?.clientId !== clientId) return;
    if (reason === 'failed') this.#drop();
    else this.#asked();
  }

  /** @param {ArrayBuffer} sound */
  sound(sound) {
    const asking = this.asking;
    if (!asking || sound.byteLength !== asking.size) return;
    const url = URL.createObjectURL(new Blob([sound], { type: asking.mime }));
    if (asking.playlist) asking.playlist.add(url);
    else asking.playlist = this.#playlist(url, asking);
    asking.part += 1;
    if (asking.part >= asking.parts) asking.playlist.complete();
    if (asking.part >= asking.parts || !this.#ask()) this.#asked();
  }

  /** @param {import('./connection.js').Frame} problem @returns {boolean} whether it was about reading aloud */
  problem({ client_id: clientId, code, message }) {
    if (!this.asking || this.asking.clientId !== clientId) return false;
    const { item, along, part } = this.asking;
    if (along && part === 0 && code === 'not_found') {
      // The answer was finished before the request arrived.
      this.asking = null;
      this.#update(item, { reading: false });
      if (item.entryId > 0 && !item.streaming) this.listen(item);
      return true;
    }
    this.options.onTrouble(t('listen.failed', { why: message }));
    this.#asked();
    return true;
  }

  /** Requests the next part. @returns {boolean} whether the request was sent */
  #ask() {
    const asking = /** @type {NonNullable<typeof this.asking>} */ (this.asking);
    asking.clientId = newClientId();
    asking.size = 0;
    const { clientId, item, along, part } = asking;
    const which = along ? { message_id: item.messageId } : { entry_id: item.entryId };
    return this.options.send({ type: 'speak', client_id: clientId, ...which, part });
  }

  /**
   * Adds a player below an answer, and plays its first part.
   *
   * @param {string} url
   * @param {{ item: Item, play: boolean }} asking
   */
  #playlist(url, { item, play }) {
    const audio = el('audio', { controls: true, preload: 'auto', 'aria-label': t('listen.player') });
    const playlist = new Playlist(audio, url, () => this.#ended(audio));
    this.playlists.set(audio, playlist);
    this.#follow(audio, playlist);
    this.#update(item, { player: audio });
    this.shown.push(item);
    if (this.shown.length > KEPT) this.#discard(/** @type {Item} */ (this.shown.shift()));
    // A browser that does not let a page begin to play by itself still shows the player.
    if (play) audio.play().catch(() => this.options.onChange());
    return playlist;
  }

  /** Stops the answer that is read while it is written; it can be played from its beginning later. */
  #drop() {
    const item = this.asking?.item;
    this.shown = this.shown.filter((one) => one !== item);
    if (item?.player) {
      // A player that waits for its next part is not playing, so it sends no pause event.
      this.#ended(/** @type {HTMLAudioElement} */ (item.player));
      this.#discard(item);
    }
    this.#asked();
  }

  #asked() {
    this.asking?.playlist?.complete();
    const item = this.asking?.item;
    this.asking = null;
    if (item) this.#update(item, { reading: false });
    const next = this.next;
    this.next = null;
    if (next) this.listen(next);
  }

  /** @param {HTMLAudioElement} audio @param {Playlist} playlist */
  #follow(audio, playlist) {
    audio.addEventListener('play', () => {
      if (this.audio !== audio) this.audio?.pause();
      this.audio = audio;
      this.options.onChange();
    });
    // The end of a part also sends a pause event, although the answer continues.
    audio.addEventListener('pause', () => audio.ended || this.#ended(audio));
    audio.addEventListener('ended', () => playlist.next());
    audio.addEventListener('error', () => {
      this.#ended(audio);
      if (audio.isConnected) this.options.onTrouble(t('listen.cannot_play'));
    });
  }

  /** @param {HTMLAudioElement} audio it has stopped playing */
  #ended(audio) {
    if (this.audio === audio) this.audio = null;
    this.options.onChange();
  }

  /** @param {Item} item */
  #discard(item) {
    const audio = /** @type {HTMLAudioElement} */ (item.player);
    audio.pause();
    this.playlists.get(audio)?.discard();
    this.#update(item, { player: null });
  }

  /** @param {Item} item @param {Partial<Item>} fields */
  #update(item, fields) {
    if (this.options.store.items.has(item.uid)) this.options.store.update(item, fields);
  }
}
