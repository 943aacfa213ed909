/**
 * The session commands that the gateway knows: reads those that are typed as a message.
 *
 * @module commands
 */

const MAX_ARGUMENT = 100;

/** @typedef {{ name: string, argument: string, description: string }} Command `argument` is empty for one that takes none */

/** @type {Command[]} those of the last `welcome`; without them the gateway reads the text itself */
let known = [];

/** @param {Command[]} commands */
export function learn(commands) {
  known = commands;
}

/**
 * The command that the whole text is, with the words behind it; null for a message.
 *
 * @param {string} text
 * @returns {{name: string, argument: string} | null}
 */
export function commandOf(text) {
  const [word, ...rest] = text.trim().split(/\s+/);
  const found = known.find(({ name }) => `/${name}` === word.toLowerCase());
  if (!found || (rest.length > 0 && !found.argument)) return null;
  return { name: found.name, argument: rest.join(' ').slice(0, MAX_ARGUMENT) };
}

/** @param {string} text @returns {Command[]} those that a text of one word can become */
export function completions(text) {
  if (!/^\/[a-z]*$/i.test(text)) return [];
  return known.filter(({ name }) => `/${name}`.startsWith(text.toLowerCase()));
}
