/**
 * The WebSocket's lifecycle: hello, reconnecting with growing pauses, and a watchdog that detects a
 * silent connection. It passes frames on and interprets only `welcome`, `ready` and `pong`.
 *
 * @module connection
 */

/**
 * @typedef {Record<string, any> & { type: string }} Frame
 * @typedef {'offline' | 'connecting' | 'loading' | 'ready' | 'waiting'} LinkState
 *
 * @typedef {object} Handlers
 * @property {() => { token: string, chat: string | null, after: number }} hello called at each opening
 * @property {(frame: Frame) => void} onFrame
 * @property {(content: ArrayBuffer) => void} onBinary
 * @property {(state: LinkState) => void} onState
 * @property {(code: number) => 'retry' | 'stop' | number} onClose what to do next; a number is a pause in ms
 */

const FIRST_PAUSE_MS = 400;
const LONGEST_PAUSE_MS = 15_000;
const PING_EVERY_MS = 25_000;
const SILENCE_MS = 10_000;
const OPENING_MS = 15_000;
/** Live audio older than about three seconds is useless. */
const HELD_BACK_BYTES = 96_000;

export class Connection {
  /** @param {Handlers} handlers */
  constructor(handlers) {
    this.handlers = handlers;
    /** @type {LinkState} */
    this.state = 'offline';
    /** @type {WebSocket | null} */
    this.socket = null;
    this.failures = 0;
    this.retryTimer = 0;
    this.watchTimer = 0;
    window.addEventListener('online', () => this.hurry());
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) this.hurry();
    });
  }

  /** Opens a connection now, in place of any earlier one. */
  connect() {
    this.drop();
    this.#become('connecting');
    const socket = new WebSocket(socketUrl());
    socket.binaryType = 'arraybuffer';
    this.socket = socket;
    this.#watch(OPENING_MS);
    socket.addEventListener('open', () => {
      if (socket !== this.socket) return;
      this.#watch(OPENING_MS);
      socket.send(JSON.stringify({ type: 'hello', protocol: 1, batch: true, ...this.handlers.hello() }));
    });
    socket.addEventListener('message', (event) => {
      if (socket !== this.socket) return;
      if (typeof event.data === 'string') this.#receive(event.data, socket);
      else this.handlers.onBinary(event.data);
    });
    socket.addEventListener('close', (event) => {
      if (socket === this.socket) this.#closed(event.code);
    });
  }

  /** Closes and stays closed. */
  drop() {
    clearTimeout(this.retryTimer);
    clearTimeout(this.watchTimer);
    const socket = this.socket;
    this.socket = null;
    socket?.close(1000);
    this.#become('offline');
  }

  /** Ends a pause between two attempts early. */
  hurry() {
    if (this.state === 'waiting') this.connect();
  }

  /**
   * @param {Frame} frame
   * @returns {boolean} false when there is no ready connection: nothing was sent
   */
  send(frame) {
    if (this.state !== 'ready' || this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(frame));
    return true;
  }

  /**
   * A voice note: its header and its bytes, with nothing between.
   *
   * @param {Frame} header
   * @param {Blob} bytes
   */
  sendVoice(header, bytes) {
    if (!this.send(header)) return false;
    this.socket?.send(bytes);
    return true;
  }

  /** Sends live audio; drops it where the connection is too slow. @param {ArrayBuffer} sound */
  sendSound(sound) {
    if (this.state === 'ready' && this.socket && this.socket.bufferedAmount < HELD_BACK_BYTES) this.socket.send(sound);
  }

  /**
   * One frame, or an array of frames.
   *
   * @param {string} data
   * @param {WebSocket} socket
   */
  #receive(data, socket) {
    let frames;
    try {
      frames = [JSON.parse(data)].flat();
    } catch {
      return;
    }
    this.#watch(PING_EVERY_MS, () => this.#ping());
    for (const frame of frames) if (socket === this.socket) this.#take(frame);
  }

  /** @param {Frame} frame */
  #take(frame) {
    if (frame.type === 'welcome') this.#become('loading');
    this.handlers.onFrame(frame);
    if (frame.type === 'ready') {
      this.failures = 0;
      this.#become('ready');
    }
  }

  #ping() {
    if (this.send({ type: 'ping' })) this.#watch(SILENCE_MS);
    else this.#closed(1006);
  }

  /**
   * @param {number} afterMs
   * @param {() => void} [then] called after this silence; by default the connection counts as dead
   */
  #watch(afterMs, then) {
    clearTimeout(this.watchTimer);
    this.watchTimer = setTimeout(then ?? (() => this.#closed(1006)), afterMs);
  }

  /** @param {number} code */
  #closed(code) {
    clearTimeout(this.watchTimer);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    const next = this.handlers.onClose(code);
    if (next === 'stop') {
      this.#become('offline');
      return;
    }
    // The jitter keeps many pages from reconnecting in the same instant after a restart.
    const growing = Math.min(FIRST_PAUSE_MS * 2 ** this.failures, LONGEST_PAUSE_MS);
    const pause = typeof next === 'number' ? next : growing * (0.75 + Math.random() / 2);
    this.failures += 1;
    this.#become('waiting');
    this.retryTimer = setTimeout(() => this.connect(), pause);
  }

  /** @param {LinkState} state */
  #become(state) {
    if (state === this.state) return;
    this.state = state;
    this.handlers.onState(state);
  }
}

/** Only the page's own origin: no parameter can change it. */
function socketUrl() {
  return `${location.protocol === 'https:' ? 'wss:' : 'ws:'}//${location.host}/ws`;
}
