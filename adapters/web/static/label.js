/**
 * The label of the session on the page: its title, and whether it is off the record. Set only by durable
 * entries. It draws nothing.
 *
 * @module label
 */

export class Label {
  constructor() {
    /** @type {(label: Label) => void} */
    this.onChange = () => {};
    this.title = '';
    /** The name that the person gave the chat, in place of every title. */
    this.named = '';
    this.offRecord = false;
    /** The entry that began the session; a later title belongs to it. */
    this.began = 0;
    /** The entry with the title. */
    this.titled = 0;
  }

  /** @param {string} name the person's name for the chat, or empty */
  name(name) {
    this.named = name;
    this.onChange(this);
  }

  /** Another chat is shown. */
  clear() {
    this.named = '';
    this.title = '';
    this.offRecord = false;
    this.began = 0;
    this.titled = 0;
    this.onChange(this);
  }

  /** @param {import('./connection.js').Frame} frame `entry`, of any role */
  entry({ role, text, code, entry_id: entryId }) {
    if (role === 'session' && entryId > this.began) {
      this.began = entryId;
      // Earlier entries may arrive later: the title may be known before the entry that began its session.
      if (this.titled < entryId) this.title = '';
      this.offRecord = code === 'otr';
    } else if (role === 'title' && entryId > this.began && entryId > this.titled) {
      this.title = text;
      this.titled = entryId;
    } else {
      return;
    }
    this.onChange(this);
  }
}
