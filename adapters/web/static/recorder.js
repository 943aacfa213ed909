/**
 * The microphone: one recording at a time, with its level and its length. It has no button and
 * sends nothing; voice.js does the first, app.js the second.
 *
 * @module recorder
 */

import { t } from './texts.js';

/**
 * @typedef {{ blob: Blob, mime: string, seconds: number }} Recording
 * @typedef {'unsupported' | 'insecure' | 'denied' | 'missing' | 'busy' | 'failed'} Trouble
 */

const PREFERRED = ['audio/webm;codecs=opus', 'audio/mp4', 'audio/ogg;codecs=opus', 'audio/webm'];

/** Why there is no recording; `message` is fit to show. */
export class RecorderError extends Error {
  /** @param {Trouble} trouble */
  constructor(trouble) {
    super(t(`microphone.${trouble}`));
    this.trouble = trouble;
  }
}

/**
 * @param {MediaTrackConstraints} constraints
 * @returns {Promise<MediaStream>}
 * @throws {RecorderError}
 */
export async function askForMicrophone(constraints) {
  if (!navigator.mediaDevices?.getUserMedia) throw new RecorderError(isSecureContext ? 'unsupported' : 'insecure');
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: constraints });
  } catch (error) {
    throw new RecorderError(troubleOf(error));
  }
}

export class Recorder {
  /** @param {MediaStream} stream @param {() => void} onEnd the microphone was disconnected */
  constructor(stream, onEnd) {
    this.stream = stream;
    this.startedAt = performance.now();
    this.bytes = 0;
    /** @type {Blob[]} */
    this.parts = [];
    this.media = new MediaRecorder(stream, { mimeType: bestType(), audioBitsPerSecond: 32_000 });
    this.media.addEventListener('dataavailable', (event) => {
      this.parts.push(event.data);
      this.bytes += event.data.size;
    });
    stream.getAudioTracks()[0]?.addEventListener('ended', onEnd);
    this.sound = new AudioContext();
    this.analyser = this.sound.createAnalyser();
    this.analyser.fftSize = 1024;
    this.sound.createMediaStreamSource(stream).connect(this.analyser);
    this.samples = new Float32Array(this.analyser.fftSize);
    this.media.start(250);
  }

  /**
   * Requests the microphone and starts.
   *
   * @param {MediaTrackConstraints} constraints
   * @param {() => void} onEnd
   * @returns {Promise<Recorder>}
   * @throws {RecorderError}
   */
  static async start(constraints, onEnd) {
    if (navigator.mediaDevices && (typeof MediaRecorder === 'undefined' || !bestType())) throw new RecorderError('unsupported');
    const stream = await askForMicrophone(constraints);
    try {
      return new Recorder(stream, onEnd);
    } catch {
      for (const track of stream.getTracks()) track.stop();
      throw new RecorderError('failed');
    }
  }

  /** Seconds since the start. */
  get seconds() {
    return (performance.now() - this.startedAt) / 1000;
  }

  /** @returns {number} the present loudness, 0 to 1, on a perceptual scale */
  level() {
    this.analyser.getFloatTimeDomainData(this.samples);
    let sum = 0;
    for (const sample of this.samples) sum += sample * sample;
    return loudness(Math.sqrt(sum / this.samples.length));
  }

  /** @returns {Promise<Recording>} the recording; releases the microphone */
  async stop() {
    const seconds = this.seconds;
    await new Promise((resolve) => {
      this.media.addEventListener('stop', resolve, { once: true });
      if (this.media.state === 'inactive') resolve(undefined);
      else this.media.stop();
    });
    this.#free();
    const mime = this.media.mimeType.split(';')[0];
    return { blob: new Blob(this.parts, { type: mime }), mime, seconds };
  }

  /** Throws the recording away. */
  cancel() {
    if (this.media.state !== 'inactive') this.media.stop();
    this.#free();
  }

  #free() {
    for (const track of this.stream.getTracks()) track.stop();
    if (this.sound.state !== 'closed') void this.sound.close();
  }
}

/** @param {number} rms 0 to 1 @returns {number} 0 to 1, on a perceptual scale */
export function loudness(rms) {
  return Math.min(1, Math.max(0, (20 * Math.log10(rms + 1e-6) + 60) / 54));
}

/** @returns {string} empty when the browser can record none of them */
function bestType() {
  return PREFERRED.find((type) => MediaRecorder.isTypeSupported(type)) ?? '';
}

/** @param {unknown} error of getUserMedia @returns {Trouble} */
function troubleOf(error) {
  switch (error instanceof DOMException ? error.name : '') {
    case 'NotAllowedError':
    case 'SecurityError':
      return 'denied';
    case 'NotFoundError':
    case 'OverconstrainedError':
      return 'missing';
    case 'NotReadableError':
    case 'AbortError':
      return 'busy';
    default:
      return 'failed';
  }
}
