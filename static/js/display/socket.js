// A socket to the server: it connects, reconnects, and reports the state of the connection.
import { base } from "./base.js";

const REFUSED = new Set([4404, 4408]); // not for this person, or too many topics
const LONGEST_WAIT = 8000; // ms between two attempts
const PING_EVERY = 10000; // ms; silence for twice as long means that the network is gone

export class Socket {
  // `address` returns the path to connect to, without the base, or "" for none. `receive` gets each message, `report`
  // one of connected, waiting, offline, ended, refused.
  constructor(address, receive, report = () => {}) {
    Object.assign(this, { address, receive, report, attempts: 0, isOver: false });
    addEventListener("online", () => this.connect());
    addEventListener("offline", () => { this.report("offline"); this.socket?.close(); });
    setInterval(() => this.ping(), PING_EVERY);
    this.connect();
  }

  connect() {
    clearTimeout(this.timer);
    const address = this.address();
    // CONNECTING is 0 and OPEN is 1: a socket that is still good stays.
    if (this.isOver || !address || this.socket?.readyState <= WebSocket.OPEN) return;
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${base}${address}`);
    this.socket = socket;
    socket.onopen = () => { this.heard = Date.now(); };
    // A socket that was left may still report: only the current one counts.
    socket.onmessage = (event) => { if (socket === this.socket) this.take(JSON.parse(event.data)); };
    socket.onclose = (event) => { if (socket === this.socket) this.closed(event.code); };
  }

  // The address has changed.
  restart() {
    this.isOver = false;
    this.letGo();
    this.connect();
  }

  take(message) {
    this.heard = Date.now();
    // Only a message shows that the server works: a socket may open and close at once.
    this.attempts = 0;
    this.isOver = message.type === "end";
    this.report(this.isOver ? "ended" : "connected");
    this.receive(message);
  }

  closed(code) {
    if (this.isOver) return;
    this.isOver = REFUSED.has(code);
    if (this.isOver) { this.report("refused"); return; }
    this.report(navigator.onLine ? "waiting" : "offline");
    // Many pages lose a server at the same moment; random waits keep them from reconnecting at the same moment.
    const soon = navigator.onLine ? 300 * 2 ** this.attempts++ : LONGEST_WAIT;
    const wait = Math.min(LONGEST_WAIT, soon) * (0.7 + 0.6 * Math.random());
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), wait);
  }

  // After a loss of the network, closing a socket may take minutes: leave it, and open another.
  ping() {
    if (this.socket?.readyState !== WebSocket.OPEN) return;
    // A second more than two rounds, for an answer that is on its way.
    if (Date.now() - this.heard > 2 * PING_EVERY + 1000) {
      this.letGo();
      this.closed(0);
    } else this.socket.send('{"type": "ping"}');
  }

  letGo() {
    const dead = this.socket;
    // Forgotten first, so that its end is not taken for that of the next one.
    this.socket = null;
    dead?.close();
  }
}
