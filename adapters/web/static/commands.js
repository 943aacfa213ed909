/**
 * The session commands that the gateway knows: reads those that are typed as a message.
 *
 * @module commands
 */

const MAX_ARGUMENT = 100;
/** @type {Record<string, number>} commands whose words behind them are a whole message */
const LONGER = { run: 4000 };

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
  const [word] = text.trim().split(/\s+/, 1);
  const argument = text.trim().slice(word.length).trim();
  const found = known.find(({ name }) => `/${name}` === word.toLowerCase());
  if (!found || (argument && !found.argument)) return null;
  return { name: found.name, argument: argument.slice(0, LONGER[found.name] ?? MAX_ARGUMENT) };
}

/** @param {string} text @returns {Command[]} those that a text of one word can become */
export function completions(text) {
  if (!/^\/[a-z]*$/i.test(text)) return [];
  return known.filter(({ name }) => `/${name}`.startsWith(text.toLowerCase()));
}
