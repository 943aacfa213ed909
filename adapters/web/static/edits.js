/**
 * Editing the last message: its words are in the field, and what is sent replaces it.
 *
 * @module edits
 */

import { byId, el } from './dom.js';
import { t } from './texts.js';

export class Edits {
  /** @param {import('./composer.js').Composer} composer */
  constructor(composer) {
    this.composer = composer;
    this.root = '';
    this.bar = el('p', { class: 'editing', role: 'status' });
    this.bar.hidden = true;
    const cancel = el('button', { type: 'button', class: 'quiet' }, t('cancel'));
    cancel.addEventListener('click', () => this.cancel());
    this.bar.append(t('compose.edits'), ' ', cancel);
    byId('composer-card').prepend(this.bar);
  }

  /** @param {string} root the first message of the turn @param {string} text */
  begin(root, text) {
    this.root = root;
    this.bar.hidden = false;
    this.composer.fill(text);
  }

  /** @returns {boolean} whether an edit was in progress */
  cancel() {
    if (!this.root) return false;
    this.take();
    this.composer.fill('');
    return true;
  }

  /** @returns {string} the message that is edited, or empty; the edit ends with it */
  take() {
    const root = this.root;
    this.root = '';
    this.bar.hidden = true;
    return root;
  }
}
