// The socket that says which topics have changed: connects, comes back after a break, and never carries data.

const [NOT_YOURS, TOO_MUCH] = [4404, 4408];
const MOST = 10; // topics that the server lets one socket hear
const LONGEST_WAIT = 8000; // ms between two attempts
const PING_EVERY = 10000; // ms; silence for twice as long means that the network is gone

export class Bells {
  // `ring` gets a topic; `missed` is called when bells are heard again after some may have been lost.
  constructor(ring, missed) {
    Object.assign(this, { ring, missed, topics: [], attempts: 0, ready: 0, refused: false });
    addEventListener("online", () => this.connect());
    addEventListener("offline", () => this.socket?.close());
    setInterval(() => this.ping(), PING_EVERY);
  }

  // Hear these topics from now on.
  hear(topics) {
    const wanted = topics.slice(0, MOST).sort();
    if (wanted.join() === this.topics.join()) return;
    this.topics = wanted;
    this.refused = false;
    this.letGo();
    this.connect();
  }

  connect() {
    clearTimeout(this.timer);
    if (this.refused || !this.topics.length || this.socket?.readyState <= WebSocket.OPEN) return;
    const query = new URLSearchParams(this.topics.map((topic) => ["topic", topic]));
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/live/?${query}`);
    this.socket = socket;
    socket.onopen = () => { this.heard = Date.now(); };
    socket.onmessage = (event) => { if (socket === this.socket) this.take(JSON.parse(event.data)); };
    socket.onclose = (event) => { if (socket === this.socket) this.closed(event.code); };
  }

  take({ type, topic }) {
    this.heard = Date.now();
    this.attempts = 0;
    if (type === "bell") this.ring(topic);
    if (type === "ready" && this.ready++) this.missed();
  }

  closed(code) {
    this.refused = code === NOT_YOURS || code === TOO_MUCH;
    if (this.refused) return;
    // Many pages lose a server at the same moment: they do not come back at the same moment.
    const wait = Math.min(LONGEST_WAIT, 300 * 2 ** this.attempts++) * (0.7 + 0.6 * Math.random());
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), wait);
  }

  ping() {
    if (this.socket?.readyState !== WebSocket.OPEN) return;
    if (Date.now() - this.heard > 2 * PING_EVERY) {
      this.letGo();
      this.closed(0);
    } else this.socket.send('{"type": "ping"}');
  }

  letGo() {
    const dead = this.socket;
    this.socket = null;
    dead?.close();
  }
}
