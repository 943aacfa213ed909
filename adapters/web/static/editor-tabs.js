/**
 * Tabs: one of several parts is shown. The arrow keys move between them, as screen readers expect of tabs.
 *
 * @module editor-tabs
 */

import { el } from './dom.js';
import { t } from './texts.js';

/** Where the parts of the editor are below one another. */
export const NARROW = '(max-width: 52rem)';

export class Tabs {
  /**
   * @param {string} id
   * @param {string} label
   * @param {Record<string, HTMLElement>} parts by name, in their order
   * @param {(name: string) => void} onChoose
   */
  constructor(id, label, parts, onChoose) {
    this.onChoose = onChoose;
    this.chosen = '';
    /** @type {Record<string, HTMLButtonElement>} */
    this.buttons = {};
    /** @type {Record<string, HTMLElement>} */
    this.panels = {};
    for (const [name, part] of Object.entries(parts)) {
      const button = el('button', { type: 'button', role: 'tab', id: `wf-${id}-${name}`, 'aria-controls': `wf-${id}-${name}-part`, 'data-testid': `wf-tab-${name}` }, el('span', {}, t(`editor.tab.${name}`)));
      button.addEventListener('click', () => this.visit(name));
      this.buttons[name] = button;
      this.panels[name] = el('div', { class: `wf-part wf-part-${name}`, role: 'tabpanel', id: `wf-${id}-${name}-part`, 'aria-labelledby': `wf-${id}-${name}` }, part);
    }
    const list = el('div', { class: 'wf-tabs', role: 'tablist', 'aria-label': label }, ...Object.values(this.buttons));
    list.addEventListener('keydown', (event) => this.#pressed(event));
    this.element = el('section', { class: `wf-${id}` }, list, ...Object.values(this.panels));
    this.choose(Object.keys(parts)[0], true);
  }

  /** @param {string} name @param {boolean} [quiet] */
  choose(name, quiet = false) {
    const another = name !== this.chosen;
    this.chosen = name;
    for (const [one, button] of Object.entries(this.buttons)) {
      button.setAttribute('aria-selected', String(one === name));
      button.tabIndex = one === name ? 0 : -1;
      this.panels[one].hidden = one !== name;
    }
    if (another && !quiet) this.onChoose(name);
  }

  /** Chooses a part and shows it, also on a phone, where the parts follow one another. @param {string} name */
  visit(name) {
    this.choose(name);
    if (matchMedia(NARROW).matches) this.panels[name].scrollIntoView({ block: 'start' });
  }

  /** Shows a number beside a name; none for 0. @param {string} name @param {number} number */
  count(name, number) {
    const button = this.buttons[name];
    const words = number ? String(number) : '';
    const known = button.querySelector('.wf-count');
    if (known?.textContent === words) return;
    known?.remove();
    if (words) button.append(el('span', { class: 'wf-count' }, words));
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    const names = Object.keys(this.buttons);
    const at = names.indexOf(this.chosen);
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -at, End: names.length - 1 - at }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const name = names[(at + step + names.length) % names.length];
    this.choose(name);
    this.buttons[name].focus();
  }
}
