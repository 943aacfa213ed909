/**
 * Composes the page: connection, conversation, outbox and the parts on the screen. Every
 * interaction between two of them is here; each part itself is in its own module.
 *
 * @module app
 */

import { wireButtons } from './buttons.js';
import { commandOf, learn } from './commands.js';
import { Composer } from './composer.js';
import { Connection } from './connection.js';
import { byId } from './dom.js';
import { Edits } from './edits.js';
import { rateBy } from './feedback.js';
import { wireKeys } from './keys.js';
import { CommandMenu } from './menu.js';
import { Outbox, newClientId, textFrame } from './outbox.js';
import { Panels } from './panels.js';
import { Past } from './past.js';
import { forgetPerson, isAnotherPerson, signOut } from './people.js';
import { read, wireTheme, write } from './settings.js';
import { SIGNED_OUT, SignIn } from './signin.js';
import { Spoken } from './spoken.js';
import { StatusLine } from './status.js';
import { ConversationStore } from './store.js';
import { language, t } from './texts.js';
import { Uploads } from './uploads.js';
import { LogView } from './view.js';
import { VoiceButton } from './voice.js';

/** @typedef {import('./connection.js').Frame} Frame */
/** @typedef {import('./items.js').Item} Item */

const RESEND_MS = 4000;
/** The gateway no longer has the conversation that is shown here. */
const GONE = ['bad_chat', 'chat_deleted'];
/** Problems after which the gateway closes the connection: `closed` shows them. */
const QUIET = ['wrong_token', 'wrong_invitation', 'too_many_attempts', 'hello_timeout', 'signed_out', 'bad_chat'];
/** In place of a chat's id: the most recently active chat, from any browser. */
const LATEST = 'latest';

/** The gateway's limits; until its first `welcome`, the protocol's defaults. */
let limits = { text_chars: 8000, voice_bytes: 20_971_520, voice_seconds: 300, file_bytes: 0, files: 10 };
let botName = 'Parlour';
let resendTimer = 0;
/** The last `problem` of this connection: the gateway's reason for closing it. */
let lastProblem = { code: '', message: '' };

const outbox = new Outbox();
const lostVoices = outbox.takeLostVoices();
const status = new StatusLine();
const store = new ConversationStore((item, change) => {
  view.touch(item);
  if (change === 'changed' && item.role === 'assistant' && !item.streaming && connection.state === 'ready') status.answered();
  refreshRunning();
});
store.label.onChange = (/** @type {import('./label.js').Label} */ label) => status.session(label);
const view = new LogView(store, { retry, discard, choose, rate: rateBy((frame) => connection.send(frame), (words) => status.tell(words)), listen: (item) => void spoken.listen(item), botName: () => botName, versions: store.versions, regenerate: () => command('retry'), edit });
const connection = new Connection({
  hello: () => ({ ...signIn.hello, language, chat: read('chat') ?? LATEST, after: store.highest }),
  onFrame: receive,
  onBinary: (content) => spoken.sound(content),
  onState: (state) => {
    status.link(state, signIn.proven);
    spoken.link(state);
  },
  onClose: closed,
});
const signIn = new SignIn(() => connection.connect(), (words) => status.tell(words));
const uploads = new Uploads({ limits: () => limits, signIn, onTrouble: (words) => status.tell(words), onChange: () => composer.refresh() });
const composer = new Composer({ limit: () => limits.text_chars, files: () => uploads.state, onSend: say });
const edits = new Edits(composer);
new CommandMenu(composer);
const voice = new VoiceButton({
  limits: () => limits,
  taken: () => spoken.talking,
  onRecording: sendRecording,
  onTrouble: (words) => status.tell(words),
  onStatus: (words) => status.announce(words),
});
const spoken = new Spoken({
  connection,
  store,
  onTrouble: (words) => status.tell(words),
  onToggle: () => voice.refresh(),
  onEdit: (text) => composer.fill(text),
});
const send = (/** @type {Frame} */ frame) => connection.send(frame);
const past = new Past({ send, store, view });
const panels = new Panels({ send, onChat: show, onSignOut: () => signOut(signIn, connection, outbox), status });

start();

function start() {
  wireTheme(byId('theme'));
  wireButtons({
    command,
    say,
    composer,
    onStop: () => spoken.stop(),
    busy: () => outbox.voices.size > 0 || voice.recording,
    signIn,
  });
  wireKeys({ signIn, composer, onEscape: escape });
  for (const item of outbox.texts()) store.add({ role: 'user', ...item, state: 'sending' });
  if (signIn.token && !signIn.offered) {
    byId('app').hidden = false;
    connection.connect();
  } else {
    signIn.show();
  }
}

/** @param {Frame} frame */
function receive(frame) {
  past.frame(frame);
  if (panels.frame(frame)) return;
  switch (frame.type) {
    case 'welcome':
      welcome(frame);
      return;
    case 'entry':
      store.entry(frame);
      return;
    case 'snapshot':
      store.snapshot(frame);
      return;
    case 'ready':
      store.endHistory();
      view.endHistory();
      for (const words of lostVoices.splice(0)) store.addLocal('notice', words);
      // The connection counts as ready only after this frame.
      queueMicrotask(sendWaiting);
      return;
    case 'chat_renamed':
      if (frame.chat === read('chat')) store.label.name(frame.title);
      return;
    case 'accepted':
      outbox.remove(frame.client_id);
      store.questions.accepted(frame.client_id);
      store.accepted(frame);
      return;
    case 'event':
      store.event(frame.event);
      break;
    case 'problem':
      if (!spoken.problem(frame)) problem(frame);
      return;
  }
  spoken.frame(frame);
}

/** @param {Frame} frame */
function welcome(frame) {
  limits = { ...limits, ...frame.limits };
  botName = frame.bot || botName;
  learn(frame.commands ?? []);
  byId('bot-name').textContent = botName;
  status.name(botName);
  byId('mic').hidden = frame.voice === false;
  uploads.refresh(frame.chat);
  spoken.welcome(frame);
  const opening = signIn.open;
  signIn.accept();
  if (isAnotherPerson(frame, outbox)) return;
  if (read('chat') !== frame.chat) store.reset();
  write('chat', frame.chat);
  store.label.name(frame.name ?? '');
  view.beginHistory();
  store.beginHistory();
  composer.refresh();
  if (opening) composer.focus();
}

/** @param {Frame} frame */
function problem({ code, message, client_id: clientId }) {
  lastProblem = { code, message };
  const item = clientId ? store.byClient.get(clientId) : undefined;
  if (item && code === 'unavailable') {
    store.update(item, { problem: t('row.retrying', { why: message }) });
    clearTimeout(resendTimer);
    resendTimer = setTimeout(sendWaiting, RESEND_MS);
  } else if (item) {
    if (!item.audio) outbox.remove(clientId);
    store.update(item, { state: 'failed', problem: message, place: store.highest + 0.5 });
    status.announce(t('row.not_sent', { why: message }));
  } else if (store.questions.refused(clientId, code) || !QUIET.includes(code)) {
    status.tell(message);
  }
}

/** @param {number} code @returns {'retry' | 'stop' | number} */
function closed(code) {
  const why = lastProblem;
  lastProblem = { code: '', message: '' };
  if (code === SIGNED_OUT) forgetPerson(outbox);
  if (!GONE.includes(why.code)) return signIn.closed(code, why.message);
  write('chat', null);
  store.reset();
  return 0;
}

/** Sends everything not accepted yet, oldest first; each has its own key, so a repeat counts once. */
function sendWaiting() {
  for (const { header, blob } of outbox.waiting()) {
    if (store.byClient.get(header.client_id)?.state === 'failed') continue;
    if (blob) connection.sendVoice(header, blob);
    else connection.send(header);
  }
}

/** @param {string} text @param {import('./uploads.js').Uploaded[]} [shown] */
function say(text, shown = uploads.take()) {
  status.tell('');
  const typed = shown.length > 0 ? null : commandOf(text);
  if (typed) return void command(typed.name, typed.argument);
  const edited = edits.take();
  const item = { clientId: newClientId(), text, at: Date.now() / 1000, files: shown };
  outbox.addText({ ...item, edits: edited });
  store.add({ role: 'user', state: 'sending', ...item });
  view.toEnd();
  connection.send(textFrame({ ...item, edits: edited }));
}

/** @param {Item} item the last message of its author */
function edit(item) {
  edits.begin(store.versions.rootOf(item.messageId), store.versions.wordsOf(item.messageId) ?? item.text);
}

/** @param {import('./recorder.js').Recording} recording */
function sendRecording({ blob, mime, seconds }) {
  const item = { clientId: newClientId(), blob, mime, seconds, at: Date.now() / 1000 };
  outbox.addVoice(item);
  store.add({ role: 'user', state: 'sending', spoken: true, clientId: item.clientId, at: item.at, seconds, audio: blob });
  view.toEnd();
  status.announce(t('voice.sent'));
  connection.sendVoice({ type: 'voice', client_id: item.clientId, mime, size: blob.size }, blob);
}

/** @param {string} name @param {string} [argument] */
function command(name, argument = '') {
  const frame = { type: 'command', client_id: newClientId(), name };
  if (connection.send(argument ? { ...frame, argument } : frame)) return;
  status.tell(t('not_connected'));
}

/** Another conversation of the same person. @param {string} chat @returns {boolean} whether it is shown */
function show(chat) {
  // Waiting messages belong to this conversation, and would be sent to the other one.
  if (outbox.waiting().length > 0) return false;
  write('chat', chat);
  store.reset();
  view.toEnd();
  connection.connect();
  return true;
}

/** @param {Item} item a failed message, or the error that a message ended with */
function retry(item) {
  const source = item.role === 'error' ? store.find(item.messageId, 'user') : item;
  if (item.role !== 'error') discard(item);
  if (source?.audio) sendRecording({ blob: source.audio, mime: source.audio.type, seconds: source.seconds });
  else if (source?.text || source?.files.length) say(source.text, source.files.filter((one) => one.handle));
}

/** @param {Item} item */
function discard(item) {
  outbox.remove(item.clientId);
  store.remove(item);
  composer.focus();
}

/** @param {Item} item @param {string} choice */
function choose(item, choice) {
  const interaction = item.approval?.interaction ?? '';
  const clientId = newClientId();
  if (connection.send({ type: 'approval', client_id: clientId, interaction, choice })) {
    store.questions.answering(item, clientId, choice);
    spoken.chosen(item, choice);
    return;
  }
  status.tell(t('ask.not_connected'));
}

function escape() {
  if (voice.recording || voice.starting) voice.cancel();
  else if (spoken.playing) spoken.stop();
  else if (edits.cancel()) composer.focus();
  else if (store.active.size > 0) command('stop');
}

function refreshRunning() {
  const running = store.active.size > 0;
  byId('stop').hidden = !running;
  status.running(running);
  spoken.refresh();
}
