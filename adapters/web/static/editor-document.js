/**
 * A workflow that is being edited: plain JSON data, the changes to it, and undo. It draws nothing and sends nothing.
 * The gateway decides what is right (docs/guides/workflows.md); this module only keeps connections at their handles.
 *
 * @module editor-document
 */

/**
 * @typedef {'start' | 'agent' | 'if' | 'approval'} Kind
 * @typedef {{ id: string, type: Kind, data: Record<string, any>, x?: number, y?: number }} Node
 * @typedef {{ source: string, target: string, sourceHandle?: string }} Connection
 * @typedef {{ name?: string, nodes: Node[], connections: Connection[] } & Record<string, any>} Document
 */

export const SUBAGENT = 'subagent';
export const OTHERWISE = 'false';
/** @type {Kind[]} */
export const KINDS = ['start', 'agent', 'if', 'approval'];
const MOST_STEPS_BACK = 200;

/** @param {Node} node @returns {string[]} the handles that a run can leave it by */
export function handlesOf(node) {
  if (node.type === 'if') return [...(node.data.conditions ?? []).map((/** @type {any} */ _, /** @type {number} */ at) => `condition-${at}`), OTHERWISE];
  return node.type === 'approval' ? ['approve', 'reject'] : [''];
}

/** @param {string} name @returns {Document} */
export function emptyDocument(name) {
  return { name, nodes: [{ id: 'start', type: 'start', data: {} }], connections: [] };
}

/** @param {Record<string, any>} given a document in the form of today @returns {Document} */
function tidy(given) {
  const { nodes, connections, edges, ...rest } = structuredClone(given);
  const list = (/** @type {any} */ value) => (Array.isArray(value) ? value : []);
  const kept = list(nodes).filter((one) => one && typeof one.id === 'string').map((one) => ({ ...one, data: one.data ?? {} }));
  return { ...rest, nodes: kept, connections: list(connections ?? edges) };
}

export class Draft {
  /** @param {Record<string, any>} document @param {() => void} onChange */
  constructor(document, onChange) {
    this.document = tidy(document);
    this.onChange = onChange;
    /** @type {Document[]} */
    this.before = [];
    /** @type {Document[]} */
    this.after = [];
    /** What the last change was about: changes of one text are undone together. */
    this.last = '';
    /** Grows with each change that is no typing: forms are drawn again then, and keep the focus otherwise. */
    this.shape = 0;
    this.saved = this.document;
  }

  get changed() {
    return this.document !== this.saved;
  }

  /** @param {string} id */
  node(id) {
    return this.document.nodes.find((one) => one.id === id);
  }

  /** @param {string} id @param {string} handle */
  targets(id, handle) {
    return this.document.connections.filter((one) => one.source === id && (one.sourceHandle ?? '') === handle);
  }

  /**
   * @param {string} about
   * @param {(document: Document) => void} make changes a copy
   */
  change(about, make) {
    const next = structuredClone(this.document);
    make(next);
    if (!about || about !== this.last) this.before.push(this.document);
    if (this.before.length > MOST_STEPS_BACK) this.before.shift();
    this.after = [];
    this.last = about;
    if (!about) this.shape += 1;
    this.document = next;
    this.onChange();
  }

  /** Typing is over: what is called by the typed words is drawn again. */
  settle() {
    this.last = '';
    this.shape += 1;
    this.onChange();
  }

  undo() {
    this.#step(this.before, this.after);
  }

  redo() {
    this.#step(this.after, this.before);
  }

  /** @param {Document[]} from @param {Document[]} to */
  #step(from, to) {
    const found = from.pop();
    if (!found) return;
    to.push(this.document);
    this.last = '';
    this.shape += 1;
    this.document = found;
    this.onChange();
  }

  /** @param {Kind} type @param {number} x @param {number} y @returns {string} the new step's id */
  add(type, x, y) {
    let id = type === 'if' ? 'choice' : String(type);
    for (let number = 2; this.node(id); number += 1) id = `${type === 'if' ? 'choice' : type}_${number}`;
    const data = type === 'if' ? { conditions: [{ operator: 'contains', value: '' }] } : {};
    this.change('', ({ nodes }) => nodes.push({ id, type, data, x: Math.round(x), y: Math.round(y) }));
    return id;
  }

  /** @param {string} id */
  remove(id) {
    this.change('', (document) => {
      document.nodes = document.nodes.filter((one) => one.id !== id);
      document.connections = document.connections.filter((one) => one.source !== id && one.target !== id);
    });
  }

  /** @param {string} id @param {string} to @returns {boolean} whether the name was free */
  rename(id, to) {
    if (!to || (to !== id && this.node(to))) return false;
    if (to === id) return true;
    this.change('', (document) => {
      for (const node of document.nodes) {
        if (node.id === id) node.id = to;
        for (const field of ['systemPrompt', 'userPrompt', 'prompt']) {
          if (typeof node.data[field] === 'string') node.data[field] = node.data[field].replaceAll(`{{NOTE:${id}}}`, () => `{{NOTE:${to}}}`);
        }
      }
      for (const one of document.connections) {
        if (one.source === id) one.source = to;
        if (one.target === id) one.target = to;
      }
    });
    return true;
  }

  /** @param {string} id @param {number} x @param {number} y */
  move(id, x, y) {
    this.change('', ({ nodes }) => Object.assign(/** @type {Node} */ (nodes.find((one) => one.id === id)), { x, y }));
  }

  /** @param {string} id @param {string} field @param {any} value undefined takes the field away */
  set(id, field, value) {
    this.change(`${field} ${id}`, ({ nodes }) => {
      const { data } = /** @type {Node} */ (nodes.find((one) => one.id === id));
      if (value === undefined) delete data[field];
      else data[field] = value;
    });
  }

  /** @param {string} source @param {string} handle @param {string} target */
  connect(source, handle, target) {
    if (this.targets(source, handle).some((one) => one.target === target)) return;
    this.change('', ({ nodes, connections }) => {
      connections.push(handle ? { source, sourceHandle: handle, target } : { source, target });
      const from = nodes.find((one) => one.id === source);
      if (handle === SUBAGENT && from) from.data.tools = { ...from.data.tools, subagents: true };
    });
  }

  /** @param {number} at its place in the document */
  disconnect(at) {
    this.change('', ({ connections }) => connections.splice(at, 1));
  }

  /** @param {string} id @param {number} at */
  removeCondition(id, at) {
    this.change('', (document) => {
      document.nodes.find((one) => one.id === id)?.data.conditions.splice(at, 1);
      document.connections = document.connections.flatMap((one) => {
        const number = /^condition-(\d+)$/.exec(one.source === id ? (one.sourceHandle ?? '') : '');
        if (!number || Number(number[1]) < at) return [one];
        return Number(number[1]) === at ? [] : [{ ...one, sourceHandle: `condition-${Number(number[1]) - 1}` }];
      });
    });
  }

  /** The steps in the order of a run: those that no run reaches come last. */
  get ordered() {
    /** @type {Node[]} */
    const found = [];
    const waiting = this.document.nodes.filter((one) => one.type === 'start').map((one) => one.id);
    for (const id of waiting) {
      const node = this.node(id);
      if (!node || found.includes(node)) continue;
      found.push(node);
      waiting.push(...this.document.connections.filter((one) => one.source === id).map((one) => one.target));
    }
    return [...found, ...this.document.nodes.filter((one) => !found.includes(one))];
  }
}
