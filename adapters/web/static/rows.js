/**
 * Draws one item of the conversation. A row is built from an item and updated in place; view.js
 * puts it in order.
 *
 * @module rows
 */

import { shortened } from './asked.js';
import { branchControls, showVersion } from './branches.js';
import { copyButton, el, icon } from './dom.js';
import { exported } from './export.js';
import { thumbs } from './feedback.js';
import { fileBlock, showFiles } from './files.js';
import { showFinished } from './finished.js';
import { renderInline } from './inline.js';
import { renderMarkdown } from './markdown.js';
import { CONFIRM, EXPIRED } from './questions.js';
import { t } from './texts.js';
import { clock, timeOf, untilWords } from './times.js';
import { showWork } from './work.js';

/**
 * @typedef {import('./items.js').Item} Item
 *
 * @typedef {object} RowActions
 * @property {(item: Item) => void} retry send a failed or unanswered message again
 * @property {(item: Item) => void} discard forget a message that could not be sent
 * @property {(item: Item, choice: string) => void} choose answer an approval
 * @property {(item: Item) => void} listen read a finished answer aloud
 * @property {(item: Item, up: boolean, on: boolean) => boolean} rate say whether an answer was good
 * @property {() => string} botName
 * @property {import('./versions.js').Versions} versions
 * @property {() => void} regenerate answer the last message again
 * @property {(item: Item) => void} edit change the last message
 */

/** @type {Record<string, string>} */
const STATE_WORDS = { sending: t('row.sending'), queued: t('row.queued'), failed: t('row.failed') };

/** Errors that a user requested and that are no failures. */
const QUIET_CODES = new Set(['stopped', 'cancelled', 'canceled']);

/**
 * @param {Item} item
 * @param {RowActions} actions
 * @returns {HTMLElement}
 */
export function buildRow(item, actions) {
  const row = el('article', { 'data-testid': 'entry', 'data-role': item.role, class: `row ${item.role}` });
  updateRow(row, item, actions);
  return row;
}

/**
 * Updates a row from its item. Rows of the same role and streaming state only.
 *
 * @param {HTMLElement} row @param {Item} item @param {RowActions} actions
 */
export function updateRow(row, item, actions) {
  row.dataset.messageId = item.messageId;
  if (item.clientId) row.dataset.clientId = item.clientId;
  if (item.role === 'assistant') updateAnswer(row, item, actions);
  else row.replaceChildren(...CONTENT[item.role](item, actions, row));
  showVersion(row, item, actions);
}

/** @type {Record<Exclude<Item['role'], 'assistant'>, (item: Item, actions: RowActions, row: HTMLElement) => Node[]>} */
const CONTENT = {
  user: userContent,
  notice: noticeContent,
  error: errorContent,
  session: sessionContent,
  approval: approvalContent,
};

/** @param {HTMLElement} row @param {Item} item @param {RowActions} actions */
function updateAnswer(row, item, actions) {
  if (!row.firstChild) {
    const prose = el('div', { class: 'prose', dir: 'auto' });
    const speaker = el('span', { class: 'visually-hidden' }, `${actions.botName()}: `);
    const foot = el('div', { class: 'meta' });
    row.append(el('span', { class: 'mark', 'aria-hidden': 'true' }, icon('mark')), el('div', { class: 'body' }, speaker, prose, foot));
  }
  const prose = /** @type {HTMLElement} */ (row.querySelector('.prose'));
  const foot = /** @type {HTMLElement} */ (row.querySelector('.body > .meta'));
  // The gateway renders only whole answers: an unfinished one would have to be sent as HTML again with each
  // token, and would lose the reader's selection. Until it is finished the page renders its text.
  if (item.html && !item.streaming) showFinished(prose, item.html);
  else renderMarkdown(prose, item.text);
  showWork(/** @type {HTMLElement} */ (prose.parentElement), item);
  showFiles(prose, item.files);
  row.classList.toggle('streaming', item.streaming);
  row.classList.toggle('waiting', item.streaming && !item.text);
  if (item.streaming) {
    row.dataset.streaming = 'true';
    row.setAttribute('aria-live', 'off');
    row.setAttribute('aria-busy', 'true');
    foot.replaceChildren(...(item.text || item.activity ? [] : [dots()]));
    showPlayer(foot, item.player);
  } else {
    const kept = item.entryId > 0 && !item.unkept;
    const listen = kept && !item.player && listenButton(item, actions);
    const rated = kept ? thumbs(item, actions.rate) : [];
    foot.replaceChildren(...[timeOf(item.at), copyButton(t('row.copy'), () => item.text), listen, ...rated, ...branchControls(item, actions)].filter((one) => one !== false));
    showPlayer(foot, item.player);
  }
}

/** A playing player must not be removed from the page and added again. @param {HTMLElement} foot @param {HTMLElement | null} player */
function showPlayer(foot, player) {
  const shown = foot.previousElementSibling;
  if (shown === player) return;
  if (shown instanceof HTMLAudioElement) shown.remove();
  if (player) foot.before(player);
}

/** @param {Item} item @param {RowActions} actions */
function listenButton(item, actions) {
  const words = item.reading ? t('listen.loading') : t('listen.button');
  const label = item.reading ? words : t('listen.label');
  const button = el('button', { type: 'button', class: 'quiet listen', 'aria-label': label, 'aria-disabled': item.reading }, icon('sound'), el('span', {}, words));
  button.addEventListener('click', () => actions.listen(item));
  return button;
}

/** @param {Item} item @param {RowActions} actions @param {HTMLElement} row */
function userContent(item, actions, row) {
  row.dataset.state = item.provisional ? 'hearing' : item.state;
  // Speech in progress changes with every word; a screen reader waits until it is a message.
  if (item.provisional || item.growing) row.setAttribute('aria-live', 'off');
  else row.removeAttribute('aria-live');
  const bubble = el('div', { class: 'bubble' }, el('span', { class: 'visually-hidden' }, `${t('row.you')}: `));
  if (item.spoken) {
    const length = item.seconds ? t('row.voice_note', { time: clock(item.seconds) }) : t('row.spoken');
    bubble.append(el('div', { class: 'spoken' }, icon('mic'), el('span', {}, length), item.audio && playButton(item.audio)));
  }
  if (item.files.length > 0) bubble.append(fileBlock(item.files));
  const listening = item.spoken && !item.text && item.state !== 'answered' && item.state !== 'failed';
  if (item.text) {
    const unstable = item.provisional && el('span', { class: 'unstable' }, item.text.slice(item.stable));
    const words = item.provisional ? item.text.slice(0, item.stable) : item.text;
    const more = item.growing && el('span', { class: 'unstable' }, ' …');
    bubble.append(el('p', { class: 'text', dir: 'auto', 'data-testid': item.spoken ? 'transcript' : undefined }, words, unstable, more));
  } else if (listening) {
    bubble.append(el('p', { class: 'listening' }, item.wait || t('row.listening')));
  }
  const foot = el('div', { class: 'meta' }, timeOf(item.at));
  const words = item.problem || (listening && item.state === 'queued' ? '' : STATE_WORDS[item.state]);
  if (words) foot.append(el('span', { class: 'state' }, words));
  row.toggleAttribute('data-together', item.turn !== '');
  if (item.turn) foot.append(el('span', { class: 'state' }, t('row.together')));
  if (item.entryId > 0 || item.state === 'answered') foot.append(...branchControls(item, actions));
  if (item.state === 'failed') {
    foot.append(textButton(t('try_again'), () => actions.retry(item)), textButton(t('row.discard'), () => actions.discard(item)));
  }
  return [bubble, foot];
}

/** @param {Item} item */
function noticeContent(item) {
  const file = exported(item);
  if (file) return [icon('info'), file];
  const prose = el('div', { class: 'prose', dir: 'auto' });
  renderMarkdown(prose, item.text);
  const body = el('div', {}, prose);
  showFiles(prose, item.files);
  return [icon('info'), body];
}

/** @param {Item} item @param {RowActions} actions @param {HTMLElement} row */
function errorContent(item, actions, row) {
  row.dataset.code = item.code;
  const quiet = QUIET_CODES.has(item.code);
  row.classList.toggle('quietly', quiet);
  const words = el('p', { dir: 'auto' }, item.text || t('row.error'));
  const foot = el('div', { class: 'meta' }, timeOf(item.at));
  if (item.recoverable && !quiet) foot.append(textButton(t('row.ask_again'), () => actions.retry(item)));
  return [icon(quiet ? 'stop' : 'alert'), el('div', { class: 'body' }, words, foot)];
}

/** @param {Item} item */
function sessionContent(item) {
  return [el('span', { dir: 'auto' }, ...renderInline(item.text || t('chats.new')))];
}

/** @param {Item} item @param {RowActions} actions */
function approvalContent(item, actions) {
  const { tool, options, choice, open, sent, paused, until, command } = /** @type {NonNullable<Item['approval']>} */ (item.approval);
  const asks = t('ask.may', { tool });
  const waits = command ? t('ask.choose') : open ? t('ask.waits') : t('ask.waited');
  const title = el('p', { class: 'title' }, tool === CONFIRM ? t('ask.heard') : paused ? waits : asks);
  // The answer above it already has this text.
  const said = tool === CONFIRM && paused;
  // The title already has the first line of a tool's question, which the gateway writes in English.
  const first = `May I use ${tool}?`;
  const words = !paused && item.text.startsWith(first) ? item.text.slice(first.length).trim() : item.text;
  const reason = words && !said && (paused ? el('p', { class: 'reason', dir: 'auto' }, words) : payloadBlock(words));
  const label = paused ? t('ask.answer_to', { question: item.text || tool }) : t('ask.answer_for', { tool });
  const buttons = options.map((option) => {
    const weight = paused ? 'choice' : option === options[0] ? 'choice allow' : 'choice deny';
    const button = el('button', { type: 'button', class: weight, 'data-choice': option, disabled: sent }, option);
    button.addEventListener('click', () => actions.choose(item, option));
    return button;
  });
  const answered = choice === EXPIRED ? t('ask.expired') : t('ask.answered', { choice });
  const ended = el('p', { class: 'meta' }, choice ? answered : t('ask.closed'));
  const foot = open ? el('div', { class: 'choices', role: 'group', 'aria-label': label }, ...buttons) : ended;
  const limit = open && until > 0 && el('p', { class: 'meta' }, untilWords(until));
  return [icon('shield'), el('div', { class: 'body' }, title, reason, foot, limit)];
}

/**
 * A tool's arguments. Its lines run from left to right, for any script of a value; long ones are
 * shown in part, and the rest on request.
 *
 * @param {string} words
 */
function payloadBlock(words) {
  const short = shortened(words);
  const text = el('p', { class: 'reason payload', dir: 'ltr' }, short);
  if (short === words) return text;
  const more = textButton(t('show_all'), () => {
    text.textContent = words;
    more.remove();
    text.tabIndex = -1;
    text.focus();
  });
  return el('div', {}, text, more);
}

function dots() {
  return el('span', { class: 'dots' }, el('span'), el('span'), el('span'), el('span', { class: 'visually-hidden' }, t('row.writing')));
}

/** @param {string} words @param {() => void} act */
function textButton(words, act) {
  const button = el('button', { type: 'button', class: 'quiet' }, words);
  button.addEventListener('click', act);
  return button;
}

/** @param {Blob} audio */
function playButton(audio) {
  const button = el('button', { type: 'button', class: 'quiet play', 'aria-label': t('row.play') }, icon('play'));
  /** @type {HTMLAudioElement | null} */
  let sound = null;
  const ended = () => {
    if (sound) URL.revokeObjectURL(sound.src);
    sound = null;
    button.replaceChildren(icon('play'));
    button.setAttribute('aria-label', t('row.play'));
  };
  button.addEventListener('click', () => {
    if (sound) {
      sound.pause();
      ended();
      return;
    }
    sound = new Audio(URL.createObjectURL(audio));
    sound.addEventListener('ended', ended);
    sound.play().catch(ended);
    button.replaceChildren(icon('stop'));
    button.setAttribute('aria-label', t('row.stop_playing'));
  });
  return button;
}
