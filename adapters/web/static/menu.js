/**
 * The list of commands over the message field, while a command is typed. Up and down choose one, Tab
 * completes, Enter sends.
 *
 * @module menu
 */

import { completions } from './commands.js';
import { byId, el } from './dom.js';
import { t } from './texts.js';

export class CommandMenu {
  /** @param {import('./composer.js').Composer} composer */
  constructor(composer) {
    this.composer = composer;
    this.active = -1;
    /** @type {import('./commands.js').Command[]} */
    this.shown = [];
    this.list = el('ul', { id: 'commands', class: 'commands', role: 'listbox', 'aria-label': t('compose.commands') });
    this.list.hidden = true;
    byId('composer-card').prepend(this.list);
    const { input } = composer;
    input.setAttribute('aria-controls', 'commands');
    input.addEventListener('input', () => this.#refresh());
    input.addEventListener('blur', () => this.#hide());
    // Before the composer's own handler, which sends at Enter.
    input.addEventListener('keydown', (event) => this.#key(event), { capture: true });
  }

  #refresh() {
    this.shown = completions(this.composer.input.value);
    this.active = -1;
    this.#draw();
  }

  #hide() {
    this.shown = [];
    this.#draw();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const count = this.shown.length;
    if (count === 0 || event.isComposing) return;
    if (event.key === 'ArrowDown') this.active = (this.active + 1) % count;
    else if (event.key === 'ArrowUp') this.active = (Math.max(this.active, 0) + count - 1) % count;
    else if (event.key === 'Tab' && !event.shiftKey) this.#pick(this.shown[Math.max(this.active, 0)]);
    else if (event.key === 'Enter' && this.active >= 0) this.#pick(this.shown[this.active]);
    else if (event.key === 'Escape') this.#hide();
    else {
      if (event.key === 'Enter') this.#hide();
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
    this.#draw();
  }

  /** @param {import('./commands.js').Command} command */
  #pick({ name, argument }) {
    this.shown = [];
    this.composer.fill(argument ? `/${name} ` : `/${name}`);
  }

  #draw() {
    const { input } = this.composer;
    this.list.hidden = this.shown.length === 0;
    this.list.replaceChildren(...this.shown.map((command, index) => {
      const chosen = index === this.active;
      const option = el('li', { id: `command-${index}`, role: 'option', 'aria-selected': chosen ? 'true' : 'false' }, el('code', {}, `/${command.name}`), ` ${command.description}`);
      // A press must not take the focus from the field first.
      option.addEventListener('pointerdown', (event) => event.preventDefault());
      option.addEventListener('click', () => {
        this.#pick(command);
        this.#draw();
      });
      return option;
    }));
    if (this.active >= 0 && this.shown.length > 0) input.setAttribute('aria-activedescendant', `command-${this.active}`);
    else input.removeAttribute('aria-activedescendant');
  }
}
