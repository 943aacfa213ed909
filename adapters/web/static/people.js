/**
 * Keeps people apart who use one browser, and signs a browser out.
 *
 * @module people
 */

import { read, write } from './settings.js';

/**
 * @param {import('./connection.js').Frame} welcome
 * @param {import('./outbox.js').Outbox} outbox
 * @returns {boolean} whether another person was here before: what that one left is removed, and the page loads again
 */
export function isAnotherPerson({ person = '' }, outbox) {
  if ((read('person') ?? '') === person) return false;
  forgetPerson(outbox);
  write('person', person || null);
  location.reload();
  return true;
}

/** Removes what this browser stores of the person: words that were not sent, and which conversation is shown. @param {import('./outbox.js').Outbox} outbox */
export function forgetPerson(outbox) {
  outbox.clear();
  write('chat', null);
  write('draft', null, sessionStorage);
  write('person', null);
}

/**
 * @param {import('./signin.js').SignIn} signIn
 * @param {import('./connection.js').Connection} connection
 * @param {import('./outbox.js').Outbox} outbox
 */
export function signOut(signIn, connection, outbox) {
  signIn.forget();
  forgetPerson(outbox);
  // The frame that signs this device out must leave first.
  setTimeout(() => {
    connection.drop();
    location.replace(location.pathname);
  });
}

/** Loads the page again after another tab has signed in or out. @param {import('./signin.js').SignIn} signIn */
export function watchOtherTabs(signIn) {
  window.addEventListener('storage', (event) => {
    if (event.key === 'parlour.token' && event.newValue !== signIn.token && signIn.proven) location.reload();
  });
}
