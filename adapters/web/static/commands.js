/**
 * Reads session commands that are typed as a message.
 *
 * @module commands
 */

const COMMANDS = new Set(['/stop', '/new', '/help', '/voice', '/otr', '/agent', '/link', '/unlink']);
/** Those that take words behind them. */
const WITH_ARGUMENT = new Set(['/agent', '/link']);
const MAX_ARGUMENT = 100;

/**
 * The command that the whole text is, with the words behind it; null for a message.
 *
 * @param {string} text
 * @returns {{name: string, argument: string} | null}
 */
export function commandOf(text) {
  const [word, ...rest] = text.trim().split(/\s+/);
  const known = word.toLowerCase();
  if (!COMMANDS.has(known) || (rest.length > 0 && !WITH_ARGUMENT.has(known))) return null;
  return { name: known.slice(1), argument: rest.join(' ').slice(0, MAX_ARGUMENT) };
}
