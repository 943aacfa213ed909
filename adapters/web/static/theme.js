/*
 * Sets the colour theme before the first paint, so the page never flashes.
 * A classic script on purpose: a module would run after the first paint. settings.js has
 * the toggle.
 */
(function applyTheme() {
  'use strict';
  let choice = null;
  try {
    choice = localStorage.getItem('parlour.theme');
  } catch {
    // Storage may be switched off; the system's theme is then the theme.
  }
  if (choice === 'light' || choice === 'dark') document.documentElement.dataset.theme = choice;
})();
