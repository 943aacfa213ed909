/**
 * Times and lengths as readable text, in the browser's language.
 *
 * @module times
 */

import { el } from './dom.js';
import { locale, measure, t } from './texts.js';

/** @param {number} seconds @returns {string} `m:ss` */
export function clock(seconds) {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

/** @param {number} seconds @returns {string} an estimated length: `8 s`, `20 s`, `3 min` */
export function spanOf(seconds) {
  if (seconds > 90) return measure('minute', Math.round(seconds / 60));
  return measure('second', seconds < 10 ? Math.ceil(seconds) : 5 * Math.round(seconds / 5));
}

/** @param {number} at Unix seconds @returns {HTMLTimeElement} */
export function timeOf(at) {
  const date = new Date(at * 1000);
  const short = date.toLocaleTimeString(locale, { hour: '2-digit', minute: '2-digit' });
  return el('time', { datetime: date.toISOString(), title: date.toLocaleString(locale) }, short);
}

/** @param {number} at Unix seconds, in the future @returns {string} */
export function untilWords(at) {
  const date = new Date(at * 1000);
  const time = date.toLocaleTimeString(locale, { hour: '2-digit', minute: '2-digit' });
  return daysAgo(date) === 0 ? t('ask.until', { time }) : t('ask.until_day', { day: dayWords(at), time });
}

/** @param {Date} date @returns {number} whole days from its day to today */
function daysAgo(date) {
  return Math.round((new Date().setHours(0, 0, 0, 0) - new Date(date).setHours(0, 0, 0, 0)) / 86_400_000);
}

/** @param {number} at Unix seconds @returns {string} the day, as readable text */
export function dayWords(at) {
  const date = new Date(at * 1000);
  const days = daysAgo(date);
  if (days === 0 || days === 1) {
    const words = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' }).format(-days, 'day');
    return words[0].toLocaleUpperCase(locale) + words.slice(1);
  }
  const year = date.getFullYear() === new Date().getFullYear() ? undefined : 'numeric';
  return date.toLocaleDateString(locale, { weekday: 'long', day: 'numeric', month: 'long', year });
}
