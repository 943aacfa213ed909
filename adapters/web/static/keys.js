/**
 * The keys that work wherever the focus is: Escape stops, a slash goes to the message field.
 *
 * @module keys
 */

/**
 * @param {object} options
 * @param {import('./signin.js').SignIn} options.signIn
 * @param {import('./composer.js').Composer} options.composer
 * @param {() => void} options.onEscape
 */
export function wireKeys({ signIn, composer, onEscape }) {
  document.addEventListener('keydown', (event) => {
    if (signIn.open || event.isComposing || document.querySelector('dialog[open]')) return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.key === 'Escape') {
      onEscape();
    } else if (event.key === '/' && !target.closest('input, textarea, select') && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      composer.focus();
    }
  });
}
