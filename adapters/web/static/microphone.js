/**
 * The open microphone of a voice conversation: a stream of PCM frames and their loudness. It has no
 * button and sends nothing; talk.js does both. recorder.js records voice notes.
 *
 * @module microphone
 */

import { RecorderError, askForMicrophone, loudness } from './recorder.js';

export class LiveMicrophone {
  /** @param {MediaStream} stream @param {AudioContext} sound @param {(frame: ArrayBuffer) => void} onSound */
  constructor(stream, sound, onSound) {
    this.stream = stream;
    this.sound = sound;
    /** Loudness of the last frame, 0 to 1. */
    this.level = 0;
    this.node = new AudioWorkletNode(sound, 'pcm-frames', { channelCount: 1, channelCountMode: 'explicit' });
    this.node.port.onmessage = ({ data }) => {
      const samples = new Int16Array(data);
      let sum = 0;
      for (const sample of samples) sum += sample * sample;
      this.level = loudness(Math.sqrt(sum / samples.length) / 32_768);
      onSound(data);
    };
    sound.createMediaStreamSource(stream).connect(this.node);
    // Browsers run only nodes connected to the loudspeaker; this one outputs silence.
    this.node.connect(sound.destination);
  }

  /**
   * @param {MediaTrackConstraints} constraints
   * @param {{ onSound: (frame: ArrayBuffer) => void, onEnd: () => void }} handlers `onEnd`: the microphone was disconnected
   * @returns {Promise<LiveMicrophone>}
   * @throws {RecorderError}
   */
  static async open(constraints, { onSound, onEnd }) {
    if (navigator.mediaDevices && typeof AudioWorkletNode === 'undefined') throw new RecorderError('unsupported');
    const stream = await askForMicrophone(constraints);
    const sound = new AudioContext();
    try {
      await sound.audioWorklet.addModule(new URL('pcm-worklet.js', import.meta.url).href);
      await sound.resume();
      stream.getAudioTracks()[0]?.addEventListener('ended', onEnd);
      return new LiveMicrophone(stream, sound, onSound);
    } catch {
      free(stream, sound);
      throw new RecorderError('failed');
    }
  }

  close() {
    this.node.port.onmessage = null;
    free(this.stream, this.sound);
  }
}

/** @param {MediaStream} stream @param {AudioContext} sound */
function free(stream, sound) {
  for (const track of stream.getTracks()) track.stop();
  if (sound.state !== 'closed') void sound.close();
}
