/**
 * The page's texts in its language, and numbers, dates and sizes as that language writes them. The
 * gateway writes the table of one language into index.html (adapters/web/languages), so no module waits for it.
 *
 * @module texts
 */

/** @typedef {string | Record<string, string>} Text one with a number has a form for each plural category */

/** @type {{ language: string, languages: [string, string][], texts: Record<string, Text> }} */
const table = JSON.parse(document.getElementById('texts')?.textContent ?? '{}');

/** The page's language, and all that it can be shown in: tag and name. */
export const language = table.language;
export const languages = table.languages;

/** The browser's own variant of the language, such as `en-GB` for `en`, decides how dates are written. */
export const locale = navigator.languages.find((one) => one.split('-')[0] === language.split('-')[0]) ?? language;

const numbers = new Intl.NumberFormat(locale);
const plurals = new Intl.PluralRules(locale);

/**
 * @param {string} key
 * @param {Record<string, string | number>} [values] for the places in braces; `count` chooses the plural form
 * @returns {string}
 */
export function t(key, values = {}) {
  const text = table.texts[key];
  const form = typeof text === 'string' ? text : (text[plurals.select(Number(values.count))] ?? text.other);
  return form.replace(/\{(\w+)\}/g, (_, name) => (typeof values[name] === 'number' ? numbers.format(values[name]) : String(values[name])));
}

/** Adds the texts of a part that is loaded later. @param {Record<string, Text>} texts */
export function addTexts(texts) {
  Object.assign(table.texts, texts);
}

/** @param {string} unit as Intl names it @param {number} value @param {number} [digits] after the point @param {'short' | 'long'} [unitDisplay] */
export function measure(unit, value, digits = 0, unitDisplay = 'short') {
  return new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay, maximumFractionDigits: digits }).format(value);
}
