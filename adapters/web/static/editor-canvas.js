/**
 * The drawing of a workflow: move steps, connect them, and delete, by pointer. Everything that it does, the list view
 * (editor-list.js) does by keyboard and for a screen reader, so the drawing itself is one image to those.
 *
 * @module editor-canvas
 */

import { el } from './dom.js';
import { SUBAGENT } from './editor-document.js';
import { WIDTH, boundsOf, curve, exitOf, freePlace, nodeAt, placeOf } from './editor-layout.js';
import { sign, step, svg, wire } from './editor-shapes.js';
import { kindWords } from './editor-words.js';
import { t } from './texts.js';

/** @typedef {import('./editor-document.js').Kind} Kind */
/** @typedef {import('./editor.js').Editor} Editor */
/** @typedef {{ kind: 'pan' | 'move' | 'connect' | 'place', x: number, y: number, id?: string, handle?: string, type?: Kind, moved: boolean, left: number, top: number }} Grip */

const GRID = 4;
const CLOSEST = 1.5;
const FARTHEST = 0.25;

export class Canvas {
  /** @param {Editor} editor */
  constructor(editor) {
    this.editor = editor;
    /** The part of the drawing that is shown, and its scale. */
    this.view = { x: 0, y: 0, scale: 1 };
    /** @type {Grip | null} */
    this.grip = null;
    this.lines = svg('g', {});
    this.steps = svg('g', {});
    this.loose = svg('path', { class: 'wf-loose' });
    this.world = svg('g', {}, this.lines, this.steps, this.loose);
    this.svg = svg('svg', { class: 'wf-drawing', role: 'img', 'aria-label': t('editor.drawing_label'), 'data-testid': 'wf-drawing' }, this.world);
    this.palette = el('div', { class: 'wf-palette', role: 'group', 'aria-label': t('editor.add') }, ...(/** @type {Kind[]} */ (['agent', 'if', 'approval', 'start'])).map((type) => this.#adder(type)));
    const zoom = el('div', { class: 'wf-zoom', role: 'group', 'aria-label': t('editor.zoom') }, this.#button('out', 'editor.zoom_out', () => this.#zoom(0.8)), this.#button('in', 'editor.zoom_in', () => this.#zoom(1.25)), this.#button('fit', 'editor.zoom_fit', () => this.fit()));
    this.element = el('div', { class: 'wf-canvas' }, this.palette, zoom);
    this.element.prepend(this.svg);
    this.svg.addEventListener('pointerdown', (event) => this.#down(event));
    this.svg.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
    window.addEventListener('pointermove', (event) => this.#moved(event));
    window.addEventListener('pointerup', (event) => this.#up(event));
    window.addEventListener('pointercancel', () => this.#drop());
  }

  /** @param {Kind} type */
  #adder(type) {
    const button = el('button', { type: 'button', class: 'wf-add', 'data-testid': `wf-add-${type}`, 'data-kind': type }, el('span', {}, kindWords(type)));
    button.prepend(sign(type));
    button.addEventListener('click', () => {
      this.editor.add(type, ...freePlace(this.editor.draft.document));
      this.reveal();
    });
    button.addEventListener('pointerdown', (event) => {
      if (event.button === 0 && event.pointerType === 'mouse') this.grip = { kind: 'place', type, x: event.clientX, y: event.clientY, moved: false, left: 0, top: 0 };
    });
    return button;
  }

  /** @param {Parameters<typeof sign>[0]} name @param {string} key @param {() => void} act */
  #button(name, key, act) {
    const button = el('button', { type: 'button', class: 'tool', 'aria-label': t(key), title: t(key) });
    button.append(sign(name));
    button.addEventListener('click', act);
    return button;
  }

  draw() {
    const { draft, selected, wrong, shown } = this.editor;
    const { nodes, connections } = draft.document;
    this.lines.replaceChildren(
      ...connections.flatMap((one, at) => {
        const from = draft.node(one.source);
        const to = draft.node(one.target);
        if (!from || !to) return [];
        return [wire(from, to, one.sourceHandle ?? '', at, nodes, { selected: selected.connection === at, wrong: wrong.connections.has(at), taken: shown?.taken.has(at) ?? false })];
      }),
    );
    this.steps.replaceChildren(...nodes.map((node) => step(node, { selected: selected.node === node.id, wrong: wrong.nodes.has(node.id), state: shown?.states[node.id] ?? '' })));
    this.#place();
  }

  /** Shows the whole drawing. */
  fit() {
    const box = this.svg.getBoundingClientRect();
    if (!box.width) return;
    const [left, top, width, height] = boundsOf(this.editor.draft.document);
    const room = { width: box.width - 72, height: box.height - 132 };
    const scale = Math.max(FARTHEST, Math.min(1, room.width / width, room.height / height));
    this.view = { scale, x: box.width / 2 - (left + width / 2) * scale, y: (box.height + 46) / 2 - (top + height / 2) * scale };
    this.#place();
  }

  /** Shows everything again if a step is out of sight. */
  reveal() {
    const box = this.svg.getBoundingClientRect();
    const [left, top, width, height] = boundsOf(this.editor.draft.document);
    const { x, y, scale } = this.view;
    const out = left * scale + x < 0 || top * scale + y < 0 || (left + width) * scale + x > box.width || (top + height) * scale + y > box.height;
    if (out) this.fit();
  }

  #place() {
    const { x, y, scale } = this.view;
    this.world.setAttribute('transform', `translate(${x} ${y}) scale(${scale})`);
  }

  /** @param {number} by @param {number} [cx] @param {number} [cy] what stays where it is, from the left and the top */
  #zoom(by, cx, cy) {
    const box = this.svg.getBoundingClientRect();
    const [px, py] = [cx ?? box.width / 2, cy ?? box.height / 2];
    const scale = Math.max(FARTHEST, Math.min(CLOSEST, this.view.scale * by));
    const ratio = scale / this.view.scale;
    this.view = { scale, x: px - (px - this.view.x) * ratio, y: py - (py - this.view.y) * ratio };
    this.#place();
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    event.preventDefault();
    const box = this.svg.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) this.#zoom(event.deltaY < 0 ? 1.1 : 0.9, event.clientX - box.left, event.clientY - box.top);
    else {
      this.view = { ...this.view, x: this.view.x - event.deltaX, y: this.view.y - event.deltaY };
      this.#place();
    }
  }

  /** @param {{ clientX: number, clientY: number }} event @returns {[number, number]} its place in the drawing */
  #at({ clientX, clientY }) {
    const box = this.svg.getBoundingClientRect();
    return [(clientX - box.left - this.view.x) / this.view.scale, (clientY - box.top - this.view.y) / this.view.scale];
  }

  /** @param {PointerEvent} event */
  #down(event) {
    if (event.button !== 0 || this.grip) return;
    const target = /** @type {Element} */ (event.target);
    const id = target.closest('.wf-step')?.getAttribute('data-id') ?? undefined;
    const port = target.closest('.wf-port');
    const line = target.closest('.wf-wire');
    const [left, top] = id === undefined ? [this.view.x, this.view.y] : placeOf(/** @type {any} */ (this.editor.draft.node(id)));
    const start = { x: event.clientX, y: event.clientY, moved: false, left, top };
    event.preventDefault();
    if (port && id !== undefined) this.grip = { ...start, kind: 'connect', id, handle: port.getAttribute('data-handle') ?? '' };
    else if (id !== undefined) this.grip = { ...start, kind: 'move', id };
    else this.grip = { ...start, kind: 'pan' };
    if (id !== undefined) this.editor.select({ node: id });
    else if (line) this.editor.select({ connection: Number(line.getAttribute('data-at')) });
    else this.editor.select({});
  }

  /** @param {PointerEvent} event */
  #moved(event) {
    const { grip } = this;
    if (!grip) return;
    const [dx, dy] = [event.clientX - grip.x, event.clientY - grip.y];
    if (!grip.moved && Math.hypot(dx, dy) < 4) return;
    grip.moved = true;
    if (grip.kind === 'pan') {
      this.view = { ...this.view, x: grip.left + dx, y: grip.top + dy };
      this.#place();
    } else if (grip.kind === 'connect') {
      const from = this.editor.draft.node(grip.id ?? '');
      if (from) this.loose.setAttribute('d', curve(exitOf(from, grip.handle ?? ''), this.#at(event), { down: grip.handle === SUBAGENT, nodes: this.editor.draft.document.nodes }));
    } else if (grip.kind === 'move') {
      this.#drag(grip, dx, dy);
    }
  }

  /** Shows a step at another place; the document is changed when it is let go. @param {Grip} grip @param {number} dx @param {number} dy */
  #drag(grip, dx, dy) {
    const node = this.editor.draft.node(grip.id ?? '');
    if (!node) return;
    const near = (/** @type {number} */ value) => Math.round(value / GRID) * GRID;
    Object.assign(grip, { toX: near(grip.left + dx / this.view.scale), toY: near(grip.top + dy / this.view.scale) });
    const { toX, toY } = /** @type {any} */ (grip);
    [...this.steps.children].find((one) => one.getAttribute('data-id') === grip.id)?.setAttribute('transform', `translate(${toX} ${toY})`);
    const place = (/** @type {string} */ id) => (id === grip.id ? { ...node, x: toX, y: toY } : this.editor.draft.node(id));
    const { nodes, connections } = this.editor.draft.document;
    const moved = nodes.map((one) => place(one.id) ?? one);
    for (const line of [...this.lines.children]) {
      const one = connections[Number(line.getAttribute('data-at'))];
      if (one?.source !== grip.id && one?.target !== grip.id) continue;
      const [from, to] = [place(one.source), place(one.target)];
      if (from && to) line.replaceWith(wire(from, to, one.sourceHandle ?? '', Number(line.getAttribute('data-at')), moved, { selected: false, wrong: false, taken: false }));
    }
  }

  /** @param {PointerEvent} event */
  #up(event) {
    const { grip } = this;
    if (!grip) return;
    this.#drop();
    if (!grip.moved) return;
    const { draft } = this.editor;
    const [x, y] = this.#at(event);
    const over = document.elementFromPoint(event.clientX, event.clientY);
    if (grip.kind === 'move' && 'toX' in grip) draft.move(grip.id ?? '', Number(grip.toX), Number(/** @type {any} */ (grip).toY));
    else if (grip.kind === 'place' && grip.type && over && this.svg.contains(over)) this.editor.add(grip.type, x - WIDTH / 2, y - 29);
    else if (grip.kind === 'connect') {
      const target = nodeAt(draft.document, x, y);
      if (target && target.type !== 'start') draft.connect(grip.id ?? '', grip.handle ?? '', target.id);
    }
  }

  #drop() {
    this.grip = null;
    this.loose.removeAttribute('d');
  }
}
