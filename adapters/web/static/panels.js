/**
 * Loads the dialogs when they are first opened, so that the page itself opens sooner.
 *
 * @module panels
 */

import { byId, el, icon } from './dom.js';
import { t } from './texts.js';

/** @typedef {{ panel: { show: () => void }, frame: (frame: import('./connection.js').Frame) => boolean }} Part */

/** @type {Promise<unknown> | null} */
let sheet = null;

export class Panels {
  /**
   * @param {object} options
   * @param {(frame: import('./connection.js').Frame) => boolean} options.send
   * @param {(chat: string) => boolean} options.onChat another conversation was chosen; false if it cannot be shown now
   * @param {() => void} options.onSignOut
   * @param {import('./status.js').StatusLine} options.status
   */
  constructor({ send, onChat, onSignOut, status }) {
    this.status = status;
    /** @type {Record<string, Part>} */
    this.loaded = {};
    this.#wire('chats', async () => new (await import('./chats.js')).Chats({ send, onChat, announce: (words) => status.announce(words) }));
    this.options = { send, onChat };
    this.#wire('settings', async () => new (await import('./account.js')).Account({ send, onSignOut }));
  }

  /** @param {import('./connection.js').Frame} frame of any type @returns {boolean} whether nothing else must show it */
  frame(frame) {
    if (frame.editor) this.#offerEditor();
    return Object.values(this.loaded).some((one) => one.frame(frame));
  }

  /** The workflow editor, for those who may edit. */
  #offerEditor() {
    if (document.getElementById('workflows')) return;
    const words = t('workflows');
    byId('settings').before(el('button', { id: 'workflows', 'data-testid': 'workflows', type: 'button', 'aria-haspopup': 'dialog', class: 'tool', 'aria-label': words, title: words }, icon('workflow')));
    this.#wire('workflows', async () => (await import('./editor-opening.js')).opened(this.options));
  }

  /** @param {string} id the button's @param {() => Promise<Part>} load */
  #wire(id, load) {
    byId(id).addEventListener('click', async () => {
      try {
        sheet ??= style();
        await sheet;
        this.loaded[id] ??= await load();
        this.loaded[id].panel.show();
      } catch {
        sheet = null;
        this.status.tell(t('not_loaded'));
      }
    });
  }
}

function style() {
  const link = el('link', { rel: 'stylesheet', href: new URL('panels.css', import.meta.url).href });
  const loaded = new Promise((done, failed) => {
    link.addEventListener('load', done);
    link.addEventListener('error', failed);
  });
  document.head.append(link);
  return loaded;
}
