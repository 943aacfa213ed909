/**
 * Shortens the text of a question about an action, where a card cannot show all of it. The gateway escapes line
 * ends within a value, so each line is shortened separately. Same rules as adapters/formatting/question_text.py.
 *
 * @module asked
 */

import { t } from './texts.js';

const WHOLE_CHARS = 1500;
const LINE_CHARS = 400;
const HEAD_CHARS = 250;
const TAIL_CHARS = 100;
const MOST_LINES = 16;
const LAST_LINES = 2;

/**
 * @param {string} words
 * @returns {string} `words` itself where it is short enough to be read
 */
export function shortened(words) {
  if (words.length <= WHOLE_CHARS) return words;
  const lines = words.split('\n').map(shortLine);
  if (lines.length <= MOST_LINES) return lines.join('\n');
  const leftOut = t('asked.lines', { count: lines.length - MOST_LINES });
  return [...lines.slice(0, MOST_LINES - LAST_LINES), leftOut, ...lines.slice(-LAST_LINES)].join('\n');
}

/** @param {string} line */
function shortLine(line) {
  if (line.length <= LINE_CHARS) return line;
  const leftOut = line.length - HEAD_CHARS - TAIL_CHARS;
  return `${line.slice(0, HEAD_CHARS)}${t('asked.characters', { count: leftOut })}${line.slice(-TAIL_CHARS)}`;
}
