// The socket of one run: connects, comes back after a break with the last event it has, and says how the connection is.

const NOT_YOURS = 4404;
const LONGEST_WAIT = 8000; // ms between two attempts
const PING_EVERY = 10000; // ms; silence for twice as long means that the network is gone

export class Stream {
  // `receive` gets each message, `report` one of connected, waiting, offline, ended, refused.
  constructor(run, last, receive, report) {
    Object.assign(this, { run, last, receive, report, attempts: 0, over: false });
    addEventListener("online", () => this.connect());
    addEventListener("offline", () => { this.report("offline"); this.socket?.close(); });
    setInterval(() => this.ping(), PING_EVERY);
    this.connect();
  }

  connect() {
    clearTimeout(this.timer);
    if (this.over || this.socket?.readyState <= WebSocket.OPEN) return;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/ws/runs/${this.run}/?after=${this.last}`);
    this.socket = socket;
    socket.onopen = () => { this.heard = Date.now(); };
    socket.onmessage = (event) => { if (socket === this.socket) this.take(JSON.parse(event.data)); };
    socket.onclose = (event) => { if (socket === this.socket) this.closed(event.code); };
  }

  // What follows event `last` is wanted (again): the page has been drawn anew.
  from(last) {
    if (this.over) { if (last >= this.last) return; this.over = false; }
    this.last = last;
    this.letGo();
    this.connect();
  }

  take(message) {
    this.heard = Date.now();
    this.attempts = 0;
    if (message.type === "event") this.last = message.seq;
    if (message.type === "end") this.over = true;
    this.report(this.over ? "ended" : "connected");
    this.receive(message);
  }

  closed(code) {
    if (this.over) return;
    if (code === NOT_YOURS) { this.over = true; this.report("refused"); return; }
    this.report(navigator.onLine ? "waiting" : "offline");
    // Many viewers lose a server at the same moment: they do not come back at the same moment.
    const soon = navigator.onLine ? 300 * 2 ** this.attempts++ : LONGEST_WAIT;
    const wait = Math.min(LONGEST_WAIT, soon) * (0.7 + 0.6 * Math.random());
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), wait);
  }

  ping() {
    if (this.socket?.readyState !== WebSocket.OPEN) return;
    if (Date.now() - this.heard > 2 * PING_EVERY + 1000) this.abandon();
    else this.socket.send('{"type": "ping"}');
  }

  // A dead network may take minutes to close a socket: let go of it and start anew.
  abandon() {
    this.letGo();
    this.closed(0);
  }

  letGo() {
    const dead = this.socket;
    this.socket = null;
    dead?.close();
  }
}
