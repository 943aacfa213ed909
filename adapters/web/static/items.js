/**
 * One row of the conversation, as plain data. rows.js draws it.
 *
 * @module items
 */

/**
 * @typedef {'user' | 'assistant' | 'notice' | 'error' | 'session' | 'approval'} Role
 * @typedef {'' | 'sending' | 'queued' | 'answering' | 'answered' | 'failed'} Delivery
 *
 * @typedef {object} Item one row of the conversation
 * @property {number} uid the page's own identity of the row
 * @property {Role} role
 * @property {string} messageId empty until the gateway has accepted it
 * @property {string} clientId empty unless this page sent it
 * @property {number} entryId 0 until it is a durable line
 * @property {string} text
 * @property {string} html a finished answer as the gateway renders it; empty until then
 * @property {number} at Unix seconds
 * @property {string} turn for a user's message: the earlier message that it is answered together with, or empty
 * @property {boolean} spoken
 * @property {string} code
 * @property {Delivery} state the delivery state of a user's message
 * @property {boolean} streaming the answer is still being written
 * @property {number} length code points received of a streaming answer, gaps included
 * @property {import('./steps.js').Step[]} steps the work on the answer so far
 * @property {boolean} workOpen they are shown
 * @property {string} activity what the bot is doing meanwhile, as text
 * @property {string} problem why it was not sent, as text
 * @property {boolean} recoverable sending it again may help
 * @property {number} seconds length of a voice note
 * @property {Blob | null} audio the voice note, while this page still has it
 * @property {string} wait how long a voice note still waits for transcription, as text
 * @property {boolean} growing the transcript is not complete yet
 * @property {boolean} provisional it is speech in progress, not a message yet
 * @property {number} stable number of a provisional row's first characters (UTF-16 units) that no longer change
 * @property {HTMLElement | null} player an answer's sound, once its first part was read aloud
 * @property {boolean} reading its audio is being synthesised
 * @property {'' | 'up' | 'down'} thumb what the person thinks of an answer
 * @property {boolean} unkept the gateway has deleted its text: it was off the record
 * @property {number} place the position of a row without `entryId`; 0 is the end
 * @property {Approval | null} approval
 * @property {import('./files.js').ShownFile[]} files what came with it
 *
 * @typedef {object} Approval a question that a person answers
 * @property {string} interaction
 * @property {string} tool the source of the question: a tool, or the step of a paused run
 * @property {string[]} options
 * @property {string} choice what was chosen
 * @property {boolean} open it can be answered
 * @property {boolean} sent an answer was sent
 * @property {boolean} paused asked by a paused run: its turn has ended, and the answer starts another
 * @property {string} command the command whose values it offers; empty for a question of a turn
 * @property {number} askedAt Unix seconds by the gateway's clock when it was asked, if it was sent again; else 0
 * @property {number} until Unix seconds by this browser's clock when the question expires; 0 for never
 */

let made = 0;

/**
 * @param {Partial<Item> & { role: Role }} fields what is known of it
 * @returns {Item}
 */
export function newItem(fields) {
  made += 1;
  return {
    uid: made,
    messageId: '',
    clientId: '',
    entryId: 0,
    text: '',
    html: '',
    at: Date.now() / 1000,
    files: [],
    turn: '',
    spoken: false,
    code: '',
    state: '',
    streaming: false,
    length: 0,
    steps: [],
    workOpen: false,
    activity: '',
    problem: '',
    recoverable: false,
    seconds: 0,
    audio: null,
    wait: '',
    growing: false,
    provisional: false,
    stable: 0,
    player: null,
    reading: false,
    thumb: '',
    unkept: false,
    place: 0,
    approval: null,
    ...fields,
  };
}
