/**
 * Requests to the gateway's workflow editor, each with its answer.
 *
 * @module editor-wire
 */

import { newClientId } from './outbox.js';
import { t } from './texts.js';

/** @typedef {import('./connection.js').Frame} Frame */

/** Why a request was not carried out: the problem's code, and its words for people. */
export class Refused extends Error {
  /** @param {string} code @param {string} words */
  constructor(code, words) {
    super(words);
    this.code = code;
  }
}

export class Wire {
  /** @param {(frame: Frame) => boolean} send */
  constructor(send) {
    this.send = send;
    /** @type {Map<string, { done: (frame: any) => void, failed: (why: Refused) => void }>} */
    this.open = new Map();
  }

  /**
   * @param {string} type
   * @param {Record<string, any>} [fields]
   * @returns {Promise<any>} the answer; rejected with Refused
   */
  ask(type, fields = {}) {
    const clientId = newClientId();
    return new Promise((done, failed) => {
      if (!this.send({ type, client_id: clientId, ...fields })) failed(new Refused('offline', t('not_connected')));
      else this.open.set(clientId, { done, failed });
    });
  }

  /** @param {Frame} frame of any type @returns {boolean} whether it answers a request */
  frame(frame) {
    if (frame.type === 'welcome') {
      // What was asked over the connection before is not answered over this one.
      for (const { failed } of this.open.values()) failed(new Refused('offline', t('not_connected')));
      this.open.clear();
      return false;
    }
    const asked = this.open.get(frame.client_id ?? '');
    if (!asked) return false;
    this.open.delete(frame.client_id);
    if (frame.type === 'problem') asked.failed(new Refused(frame.code, frame.message));
    else asked.done(frame);
    return true;
  }
}
