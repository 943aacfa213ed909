/**
 * The conversation on the screen: rows in order, day lines, the reader's scroll position.
 * Changes are drawn once per frame. It does not change the conversation itself.
 *
 * @module view
 */

import { byId, el } from './dom.js';
import { inOrder } from './order.js';
import { buildRow, updateRow } from './rows.js';
import { dayWords } from './times.js';

/** @typedef {import('./items.js').Item} Item */

/** Within this distance the reader counts as being at the end. */
const NEAR_PX = 72;

export class LogView {
  /**
   * @param {import('./store.js').ConversationStore} store
   * @param {import('./rows.js').RowActions} actions
   */
  constructor(store, actions) {
    this.store = store;
    this.actions = actions;
    this.log = byId('log');
    this.scroller = byId('scroller');
    this.empty = byId('empty');
    this.jump = byId('jump');
    /** @type {Map<number, { row: HTMLElement, streaming: boolean, where: string }>} */
    this.rows = new Map();
    /** @type {Map<string, HTMLElement>} */
    this.days = new Map();
    /** @type {Set<Item>} */
    this.dirty = new Set();
    this.scheduled = false;
    /** Whether a row was added, removed or moved since the last drawing. */
    this.disordered = true;
    this.pinned = true;
    this.loaded = false;
    /** Entries are added above: keeps the reader's scroll position. */
    this.growsUp = false;
    this.#wireScrolling();
  }

  /** Marks an item to be drawn again. @param {Item} item */
  touch(item) {
    this.dirty.add(item);
    if (this.scheduled) return;
    this.scheduled = true;
    // A hidden tab gets no animation frames, but its conversation must be drawn when it is shown.
    if (document.hidden) setTimeout(() => this.#draw(), 100);
    else requestAnimationFrame(() => this.#draw());
  }

  /** The history is being loaded: nothing of it is announced. */
  beginHistory() {
    this.log.setAttribute('aria-live', 'off');
    this.log.setAttribute('aria-busy', 'true');
  }

  /** The history is loaded; from now on new entries are announced. */
  endHistory() {
    this.loaded = true;
    this.#draw();
    this.log.setAttribute('aria-busy', 'false');
    setTimeout(() => this.log.setAttribute('aria-live', 'polite'), 0);
  }

  /** Earlier entries are about to arrive. */
  beginEarlier() {
    this.beginHistory();
    this.pinned = false;
    this.growsUp = true;
  }

  /** They have arrived. */
  endEarlier() {
    this.endHistory();
    this.growsUp = false;
  }

  /** Scrolls to the end. */
  toEnd() {
    this.pinned = true;
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.#showJump();
  }

  #draw() {
    this.scheduled = false;
    const below = this.scroller.scrollHeight - this.scroller.scrollTop;
    const changed = this.dirty;
    this.dirty = new Set();
    for (const item of changed) this.#drawItem(item);
    if (this.disordered) this.#arrange();
    this.empty.hidden = !this.loaded || this.rows.size > 0;
    if (this.growsUp) this.scroller.scrollTop = this.scroller.scrollHeight - below;
    else if (this.pinned) this.scroller.scrollTop = this.scroller.scrollHeight;
    this.#showJump();
  }

  /** @param {Item} item */
  #drawItem(item) {
    const known = this.rows.get(item.uid);
    const where = `${item.entryId} ${item.place} ${item.messageId} ${item.at}`;
    if (known?.where !== where) this.disordered = true;
    if (!this.store.items.has(item.uid)) {
      known?.row.remove();
      this.rows.delete(item.uid);
      this.disordered = true;
    } else if (!known) {
      this.rows.set(item.uid, { row: buildRow(item, this.actions), streaming: item.streaming, where });
    } else if (known.streaming && !item.streaming) {
      // A new node, so that a screen reader reads the finished answer once and as a whole.
      const row = buildRow(item, this.actions);
      row.classList.add('settled');
      known.row.replaceWith(row);
      this.rows.set(item.uid, { row, streaming: false, where });
    } else {
      const focused = known.row.contains(document.activeElement);
      updateRow(known.row, item, this.actions);
      known.where = where;
      if (focused && !known.row.contains(document.activeElement)) byId('input').focus();
    }
  }

  /** Puts rows and day lines in order, moving only misplaced ones. */
  #arrange() {
    this.disordered = false;
    /** @type {Node[]} */
    const wanted = [];
    let day = '';
    const used = new Set();
    for (const item of inOrder(this.store)) {
      const known = this.rows.get(item.uid);
      if (!known) continue;
      const itsDay = new Date(item.at * 1000).toDateString();
      if (itsDay !== day && !used.has(itsDay)) {
        day = itsDay;
        used.add(day);
        wanted.push(this.#dayLine(day, item.at));
      }
      wanted.push(known.row);
    }
    for (const [name, line] of this.days) {
      if (used.has(name)) continue;
      line.remove();
      this.days.delete(name);
    }
    let place = this.log.firstChild;
    for (const node of wanted) {
      if (node === place) place = place.nextSibling;
      else this.log.insertBefore(node, place);
    }
  }

  /** @param {string} day @param {number} at */
  #dayLine(day, at) {
    let line = this.days.get(day);
    if (!line) {
      line = el('div', { class: 'day', role: 'separator' });
      this.days.set(day, line);
    }
    const words = dayWords(at);
    if (line.textContent !== words) line.replaceChildren(el('span', {}, words));
    return line;
  }

  #wireScrolling() {
    this.scroller.addEventListener('scroll', () => {
      const { scrollTop, scrollHeight, clientHeight } = this.scroller;
      this.pinned = scrollHeight - scrollTop - clientHeight < NEAR_PX;
      this.#showJump();
    }, { passive: true });
    const follow = new ResizeObserver(() => {
      if (this.pinned) this.scroller.scrollTop = this.scroller.scrollHeight;
    });
    follow.observe(this.scroller);
    follow.observe(this.log);
    this.jump.addEventListener('click', () => {
      this.toEnd();
      byId('input').focus();
    });
  }

  #showJump() {
    this.jump.hidden = this.pinned;
  }
}
