/*
 * The service worker: the page without network. It stores the files of one version, which the gateway writes into
 * this script, and the page itself as it was loaded last. The page comes from the network where that answers; the
 * files have their version in their names, so files of two versions are never mixed. It stores nothing else: no
 * socket, no upload, no file of a conversation, no token.
 */
'use strict';

const VERSION = '{{version}}';
const FILES = '{{files}}'.split(' ');
const PREFIX = 'parlour-';
const FOLDER = `/static/${VERSION}/`;
/** How long the network may take before the stored page is shown. */
const PATIENCE_MS = 5000;

self.addEventListener('install', (event) => {
  event.waitUntil(store());
  // Safe at once: an open page keeps its version's files, which `activate` leaves in the browser.
  self.skipWaiting();
});

self.addEventListener('activate', (event) => {
  event.waitUntil(clean().then(() => self.clients.claim()));
});

self.addEventListener('fetch', (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== 'GET' || url.origin !== self.location.origin) return;
  if (request.mode === 'navigate' && url.pathname === '/') event.respondWith(page(event));
  else if (url.pathname.startsWith('/static/')) event.respondWith(file(request));
});

async function store() {
  const cache = await caches.open(PREFIX + VERSION);
  await cache.addAll(FILES.map((name) => FOLDER + name));
  await keep(await fetch('/', { cache: 'no-cache' }));
}

/** The version before stays for pages that are still open. */
async function clean() {
  const names = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== PREFIX + VERSION);
  await Promise.all(names.slice(0, -1).map((name) => caches.delete(name)));
}

/** Stores the page if it is one of this version. @param {Response} response */
async function keep(response) {
  if (!response.ok || response.redirected) return;
  const cache = await caches.open(PREFIX + VERSION);
  if ((await response.clone().text()).includes(FOLDER)) await cache.put('/', response);
}

/** @param {FetchEvent} event */
async function page(event) {
  const fresh = fetch(event.request);
  const stored = await caches.match('/', { cacheName: PREFIX + VERSION });
  if (stored) {
    const slow = new Promise((done) => setTimeout(done, PATIENCE_MS));
    const first = await Promise.race([fresh, slow]).catch(() => undefined);
    // A proxy answers with 502 to 504 while the gateway is down.
    if (!first || (first.status >= 502 && first.status <= 504)) return stored;
  }
  const response = await fresh;
  event.waitUntil(keep(response.clone()));
  return response;
}

/** @param {Request} request */
async function file(request) {
  return (await caches.match(request)) ?? fetch(request);
}
