/**
 * Runs in the browser's audio thread: converts the microphone's audio to frames of 16 kHz, mono, 16 bit,
 * and posts each as an ArrayBuffer. One file without imports, because some browsers do not load them here.
 *
 * @module pcm-worklet
 */

const RATE = 16_000;
/** 64 ms: two windows of a voice detector, and few enough messages. */
const FRAME_SAMPLES = 1024;
/** Zero crossings of the filter on either side, in samples of the slower of both rates. */
const LOBES = 16;
/** The filter's edge below half of the slower rate: higher frequencies would alias. */
const EDGE = 0.92;
const PHASES = 64;

/** Changes the sample rate with a windowed sinc filter; any ratio, no gap between blocks. */
class Resampler {
  /** @param {number} from @param {number} to samples a second */
  constructor(from, to) {
    this.step = from / to;
    this.half = Math.ceil(LOBES * Math.max(1, this.step));
    this.filters = filters(this.half, EDGE / Math.max(1, this.step));
    /** The last input samples, with space for more; silence before the first. */
    this.kept = new Float32Array(2 * this.half + 4096);
    this.length = this.half;
    /** The position of the next output sample in `kept`. */
    this.at = this.half;
  }

  /** @param {Float32Array} input @param {(sample: number) => void} give called for each output sample */
  push(input, give) {
    this.kept.set(input, this.length);
    this.length += input.length;
    while (this.at + this.half + 1 < this.length) {
      const whole = Math.floor(this.at);
      const filter = this.filters[Math.round((this.at - whole) * PHASES)];
      let sum = 0;
      for (let tap = 0, from = whole - this.half; tap < filter.length; tap += 1) sum += filter[tap] * this.kept[from + tap];
      give(sum);
      this.at += this.step;
    }
    const done = Math.floor(this.at) - this.half;
    if (done > 0) {
      this.kept.copyWithin(0, done, this.length);
      this.length -= done;
      this.at -= done;
    }
  }
}

/**
 * @param {number} half taps on either side
 * @param {number} width of the passed band, as a share of half the input's rate
 * @returns {Float32Array[]} one filter for each place between two input samples
 */
function filters(half, width) {
  return Array.from({ length: PHASES + 1 }, (_, phase) => {
    const taps = Float32Array.from({ length: 2 * half + 1 }, (_none, tap) => {
      const x = tap - half - phase / PHASES;
      const sinc = x === 0 ? 1 : Math.sin(Math.PI * x * width) / (Math.PI * x * width);
      const window = 0.5 + 0.5 * Math.cos((Math.PI * x) / (half + 1));
      return sinc * window;
    });
    const sum = taps.reduce((total, tap) => total + tap, 0);
    return taps.map((tap) => tap / sum);
  });
}

class PcmFrames extends AudioWorkletProcessor {
  constructor() {
    super();
    this.resampler = new Resampler(sampleRate, RATE);
    this.frame = new Int16Array(FRAME_SAMPLES);
    this.filled = 0;
  }

  /** @param {Float32Array[][]} inputs */
  process([channels]) {
    if (channels[0]) this.resampler.push(channels[0], (sample) => this.#take(sample));
    return true;
  }

  /** @param {number} sample */
  #take(sample) {
    this.frame[this.filled] = Math.round(Math.min(1, Math.max(-1, sample)) * 32_767);
    this.filled += 1;
    if (this.filled < FRAME_SAMPLES) return;
    this.port.postMessage(this.frame.buffer, [this.frame.buffer]);
    this.frame = new Int16Array(FRAME_SAMPLES);
    this.filled = 0;
  }
}

registerProcessor('pcm-frames', PcmFrames);
