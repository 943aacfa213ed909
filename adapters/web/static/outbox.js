/**
 * Messages that the gateway has not yet accepted. Texts survive a reload (localStorage); voice
 * notes are in memory only, and a marker in the tab's session storage shows when one was lost.
 * It does not send: app.js requests the waiting messages and sends them.
 *
 * @module outbox
 */

import { readJson, write } from './settings.js';
import { t } from './texts.js';
import { clock } from './times.js';

/**
 * @typedef {{ clientId: string, text: string, at: number, edits?: string, files?: import('./uploads.js').Uploaded[] }} TextItem `edits`: the message that it replaces
 * @typedef {{ clientId: string, blob: Blob, mime: string, seconds: number, at: number }} VoiceItem
 * @typedef {{ clientId: string, seconds: number, at: number }} VoiceMarker
 */

/** @returns {string} a new dedupe key of the alphabet that the protocol allows */
export function newClientId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `w_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

/** @param {TextItem} item @returns {import('./connection.js').Frame} */
export function textFrame({ clientId, text, edits, files = [] }) {
  const frame = { type: 'message', client_id: clientId, text, ...(edits && { edits }) };
  return files.length > 0 ? { ...frame, files: files.map(({ handle, name, mime, size }) => ({ handle, name, mime, size })) } : frame;
}

export class Outbox {
  constructor() {
    /** @type {Map<string, VoiceItem>} */
    this.voices = new Map();
  }

  /** @returns {TextItem[]} oldest first */
  texts() {
    return readJson('outbox', /** @type {TextItem[]} */ ([])).filter(
      (item) => typeof item?.clientId === 'string' && typeof item.text === 'string',
    );
  }

  /** @returns {{ header: import('./connection.js').Frame, blob?: Blob }[]} the frames of all waiting messages, oldest first */
  waiting() {
    const texts = this.texts().map((item) => ({ at: item.at, header: textFrame(item) }));
    const voices = [...this.voices.values()].map(({ clientId, blob, mime, at }) => ({ at, blob, header: { type: 'voice', client_id: clientId, mime, size: blob.size } }));
    return [...texts, ...voices].sort((a, b) => a.at - b.at);
  }

  /** @param {TextItem} item */
  addText(item) {
    this.#keepTexts([...this.texts().filter((kept) => kept.clientId !== item.clientId), item]);
  }

  /** @param {VoiceItem} item */
  addVoice(item) {
    this.voices.set(item.clientId, item);
    this.#keepMarkers();
  }

  /**
   * Forgets an item: it was accepted, refused for good, or discarded by its author.
   *
   * @param {string} clientId
   */
  remove(clientId) {
    const texts = this.texts();
    const left = texts.filter((item) => item.clientId !== clientId);
    if (left.length !== texts.length) this.#keepTexts(left);
    if (this.voices.delete(clientId)) this.#keepMarkers();
  }

  /** Forgets everything: another person uses this browser now. */
  clear() {
    this.voices.clear();
    this.#keepTexts([]);
    this.#keepMarkers();
  }

  /** @param {string} clientId */
  has(clientId) {
    return this.voices.has(clientId) || this.texts().some((item) => item.clientId === clientId);
  }

  /**
   * Texts about voice notes lost in a reload before they were accepted. Each is reported once.
   *
   * @returns {string[]}
   */
  takeLostVoices() {
    const lost = readJson('voices', /** @type {VoiceMarker[]} */ ([]), sessionStorage);
    write('voices', null, sessionStorage);
    return lost
      .filter((marker) => typeof marker?.seconds === 'number')
      .map(({ seconds }) => t('voice.lost', { time: clock(seconds) }));
  }

  /** @param {TextItem[]} items */
  #keepTexts(items) {
    write('outbox', items.length ? JSON.stringify(items) : null);
  }

  #keepMarkers() {
    const markers = [...this.voices.values()].map(({ clientId, seconds, at }) => ({ clientId, seconds, at }));
    write('voices', markers.length ? JSON.stringify(markers) : null, sessionStorage);
  }
}
