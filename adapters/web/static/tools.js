/**
 * Readable names of tools, the same as in the other channels.
 *
 * @module tools
 */

/**
 * @param {unknown} name as the model calls the tool
 * @returns {string} `write file` for `write_file`, `fine (weather)` for `mcp__weather__fine`
 */
export function toolWords(name) {
  const text = String(name);
  const [, server, tool] = /^mcp__(.+?)__(.+)$/.exec(text) ?? [];
  return tool ? `${spaced(tool)} (${spaced(server)})` : spaced(text);
}

/** @param {string} name */
function spaced(name) {
  return name.replaceAll('_', ' ').trim().replace(/ +/g, ' ') || name;
}
