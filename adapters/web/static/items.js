/**
 * One row of the conversation, as plain data. Not its drawing; that is rows.js.
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
 * @property {boolean} spoken
 * @property {string} code
 * @property {Delivery} state how far a user's message is
 * @property {boolean} streaming the answer is still being written
 * @property {number} length code points received of a streaming answer, gaps included
 * @property {import('./steps.js').Step[]} steps how the answer came about so far
 * @property {boolean} workOpen they are shown
 * @property {string} activity what the bot is doing meanwhile, in words
 * @property {string} problem why it was not sent, in words
 * @property {boolean} recoverable sending it again may help
 * @property {number} seconds length of a voice note
 * @property {Blob | null} audio the voice note, while this page still has it
 * @property {string} wait how long a voice note still waits to be heard, in words
 * @property {boolean} growing the transcript's end is still being heard
 * @property {boolean} provisional it is being said just now, and is no message yet
 * @property {number} stable so many of a provisional row's first characters (UTF-16 units) will stay
 * @property {HTMLElement | null} player an answer's sound, once its first part was read aloud
 * @property {boolean} reading its sound is being made
 * @property {boolean} unkept the gateway has forgotten its words: it was off the record
 * @property {number} place where a row without `entryId` stands; 0 is at the end
 * @property {Approval | null} approval
 *
 * @typedef {object} Approval a question that a person answers
 * @property {string} interaction
 * @property {string} tool what asks: a tool, or the step of a paused run
 * @property {string[]} options
 * @property {string} choice what was chosen
 * @property {boolean} open it can be answered
 * @property {boolean} sent an answer is on its way
 * @property {boolean} paused a paused run asks: its turn is over, and the answer begins another
 * @property {number} until Unix seconds by this browser's clock when nobody can answer any more; 0 for never
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
    unkept: false,
    place: 0,
    approval: null,
    ...fields,
  };
}
