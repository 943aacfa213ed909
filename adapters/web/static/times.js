/**
 * Times and lengths as readable text, in the browser's language.
 *
 * @module times
 */

import { el } from './dom.js';

/** @param {number} seconds @returns {string} `m:ss` */
export function clock(seconds) {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

/** @param {number} seconds @returns {string} an estimated length: `8 s`, `20 s`, `3 min` */
export function spanOf(seconds) {
  if (seconds > 90) return `${Math.round(seconds / 60)} min`;
  return seconds < 10 ? `${Math.ceil(seconds)} s` : `${5 * Math.round(seconds / 5)} s`;
}

/** @param {number} at Unix seconds @returns {HTMLTimeElement} */
export function timeOf(at) {
  const date = new Date(at * 1000);
  const short = date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  return el('time', { datetime: date.toISOString(), title: date.toLocaleString() }, short);
}

/** @param {number} at Unix seconds, in the future @returns {string} */
export function untilWords(at) {
  const date = new Date(at * 1000);
  const time = date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  return dayWords(at) === 'Today' ? `Open until ${time}` : `Open until ${dayWords(at)}, ${time}`;
}

/** @param {number} at Unix seconds @returns {string} the day, as readable text */
export function dayWords(at) {
  const date = new Date(at * 1000);
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(date).setHours(0, 0, 0, 0)) / 86_400_000);
  if (days === 0) return 'Today';
  if (days === 1) return 'Yesterday';
  const year = date.getFullYear() === new Date().getFullYear() ? undefined : 'numeric';
  return date.toLocaleDateString([], { weekday: 'long', day: 'numeric', month: 'long', year });
}
