/**
 * Registers the service worker (sw.js), which shows the page without network. Browsers have one only over https
 * and on the own computer.
 *
 * @module shell
 */

// Not at once: the worker fetches all files, and the page itself comes first.
window.addEventListener('load', () => {
  navigator.serviceWorker?.register('/sw.js').catch(() => {});
});
