/**
 * What the session on the page is: its title, and whether it is off the record. Told by durable
 * lines alone. It draws nothing.
 *
 * @module label
 */

export class Label {
  constructor() {
    /** @type {(label: Label) => void} */
    this.onChange = () => {};
    this.title = '';
    this.offRecord = false;
    /** The line with which the session began; a later title belongs to it. */
    this.began = 0;
    /** The line that gave the title. */
    this.titled = 0;
  }

  /** Another chat is shown. */
  clear() {
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
      // Earlier lines may come later: the title may be known before the line that its session began with.
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
