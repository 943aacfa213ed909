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
  outbox.clear();
  write('chat', null);
  write('draft', null, sessionStorage);
  write('person', person || null);
  location.reload();
  return true;
}

/** @param {import('./signin.js').SignIn} signIn @param {import('./connection.js').Connection} connection */
export function signOut(signIn, connection) {
  signIn.forget();
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
