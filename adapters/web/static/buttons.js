/**
 * The buttons around the conversation, and what the window says when it is left.
 *
 * @module buttons
 */

import { byId } from './dom.js';
import { watchOtherTabs } from './people.js';

/**
 * @param {object} options
 * @param {(name: string) => void} options.command
 * @param {(text: string) => void} options.say
 * @param {import('./composer.js').Composer} options.composer
 * @param {() => void} options.onStop
 * @param {() => boolean} options.busy something would be lost
 * @param {import('./signin.js').SignIn} options.signIn
 */
export function wireButtons({ command, say, composer, onStop, busy, signIn }) {
  byId('stop').addEventListener('click', () => {
    onStop();
    command('stop');
    composer.focus();
  });
  byId('new-chat').addEventListener('click', () => {
    command('new');
    composer.focus();
  });
  for (const chip of document.querySelectorAll('#empty .chip')) {
    chip.addEventListener('click', () => say(chip.textContent?.trim() ?? ''));
  }
  watchOtherTabs(signIn);
  window.addEventListener('beforeunload', (event) => {
    if (busy()) event.preventDefault();
  });
}
