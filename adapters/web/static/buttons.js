/**
 * The buttons around the conversation, and what the window says when it is left.
 *
 * @module buttons
 */

import { byId } from './dom.js';

/**
 * @param {object} options
 * @param {(name: string) => void} options.command
 * @param {(text: string) => void} options.say
 * @param {import('./composer.js').Composer} options.composer
 * @param {() => void} options.onStop
 * @param {() => void} options.onSignOut
 * @param {() => boolean} options.busy something would be lost
 * @param {import('./signin.js').SignIn} options.signIn
 */
export function wireButtons({ command, say, composer, onStop, onSignOut, busy, signIn }) {
  byId('stop').addEventListener('click', () => {
    onStop();
    command('stop');
    composer.focus();
  });
  byId('new-chat').addEventListener('click', () => {
    command('new');
    composer.focus();
  });
  byId('sign-out').addEventListener('click', () => {
    signIn.forget();
    onSignOut();
    location.replace(location.pathname);
  });
  for (const chip of document.querySelectorAll('#empty .chip')) {
    chip.addEventListener('click', () => say(chip.textContent?.trim() ?? ''));
  }
  window.addEventListener('storage', (event) => {
    if (event.key === 'parlour.token' && event.newValue === null && signIn.proven) location.reload();
  });
  window.addEventListener('beforeunload', (event) => {
    if (busy()) event.preventDefault();
  });
}
