/*
 * Sets the colour theme, and the view to show until the modules are loaded, before the first paint.
 * A classic script on purpose: a module would run after it. settings.js has the toggle of the theme,
 * signin.js decides about the view.
 */
(function beforeFirstPaint() {
  'use strict';
  let choice = null;
  let token = null;
  try {
    choice = localStorage.getItem('parlour.theme');
    token = localStorage.getItem('parlour.token');
  } catch {
    // Storage may be switched off; the system's theme is then the theme.
  }
  document.documentElement.dataset.first = token ? 'app' : 'signin';
  if (choice === 'light' || choice === 'dark') document.documentElement.dataset.theme = choice;
})();
