"""Questions to the page that need its own language: each is a JavaScript function for `evaluate`."""

from __future__ import annotations

DANGERS = r"""() => {
  // Everything in the log that could act: elements the renderer does not make, handlers, addresses.
  const allowed = new Set(('article div span p a em strong s code pre br hr ul ol li blockquote table thead '
    + 'tbody tr th td h3 h4 h5 h6 button time svg use input').split(' '));
  const acting = /^on|^style$|^src|^srcdoc$|^action$|^formaction$/i;
  const found = [];
  for (const node of document.querySelectorAll('#log *')) {
    const name = node.localName;
    if (!allowed.has(name)) found.push(`element ${name}`);
    if (name === 'svg' && node.getAttribute('class') !== 'icon') found.push('a foreign svg');
    if (name === 'use' && !/^#icon-[a-z]+$/.test(node.getAttribute('href'))) found.push('a foreign use');
    if (name === 'input' && !(node.type === 'checkbox' && node.disabled)) found.push('an input');
    for (const { name: attribute, value } of node.attributes) {
      if (acting.test(attribute)) found.push(`${name}[${attribute}]`);
      if (name === 'a' && attribute === 'href' && !/^(https?:\/\/|mailto:)/.test(value)) found.push(value);
    }
    const sealed = node.rel === 'noopener noreferrer nofollow' && node.target === '_blank';
    if (name === 'a' && !sealed) found.push('a bare link');
  }
  return found.concat(window.pwned ? ['it ran'] : []);
}"""
"""What in the conversation is more than inert text; empty when all is well."""

POOR_CONTRAST = r"""() => {
  // Relative luminance and contrast as WCAG 2 defines them, over each text's own background.
  const brush = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const parse = (colour) => {
    brush.fillStyle = colour;
    brush.fillRect(0, 0, 1, 1);
    return [...brush.getImageData(0, 0, 1, 1).data];
  };
  const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const light = (rgb) => {
    const [r, g, b] = rgb.map((part) => linear(part / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      brush.clearRect(0, 0, 1, 1);
      const colour = parse(getComputedStyle(node).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const node of document.querySelectorAll('body *')) {
    const text = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!text || !node.checkVisibility() || node.closest('.visually-hidden, :disabled, .skip')) continue;
    let pair = [parse(getComputedStyle(node).color).slice(0, 3), behind(node).slice(0, 3)];
    for (let pale = node; pale; pale = pale.parentElement) {
      const share = Number(getComputedStyle(pale).opacity);
      const beneath = behind(pale.parentElement);
      const seen = (rgb) => rgb.map((part, at) => part * share + beneath[at] * (1 - share));
      if (share < 1) pair = pair.map(seen);
    }
    const [front, back] = pair.map(light);
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    if (ratio < 4.5) poor.push(`${node.localName}.${node.className} ${ratio.toFixed(2)}`);
  }
  return poor;
}"""
"""Elements whose text has a contrast below 4.5 to 1, with the opacity of all that they are in."""

NAMELESS = r"""() => [...document.querySelectorAll('button, a[href], input, textarea')].filter((node) => {
  const name = node.getAttribute('aria-label') || node.labels?.[0]?.textContent || node.textContent;
  return !name.trim();
}).map((node) => node.id || node.className)"""
"""Controls that a screen reader could only call "button"."""

LOUDEST = r"""() => Math.max(...[...document.querySelectorAll('#recording-meter span')]
  .map((bar) => Number.parseFloat(bar.style.transform.slice('scaleY('.length))))"""
"""The highest bar of the recording's level meter, 0 to 1."""

NO_MICROPHONE = r"""(name) => {
  navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('scripted', name));
}"""
"""Makes the browser refuse the microphone with the error of that name."""

WATCH_WISHES = r"""() => {
  const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = (wish) => { window.wish = wish.audio; return real(wish); };
}"""
"""Notes in `window.wish` what was asked of the microphone."""
