"use strict";
/* The page of a worker: shows /v1/status and /v1/chart, and sends commands. Texts from the run are
 * only ever set as text, never as markup. */
const el = id => document.getElementById(id);
const make = (tag, text) => {
	const e = document.createElement(tag);
	if (text !== undefined) e.textContent = text;
	return e;
};
const scaled = (v, units, base) => {
	let i = 0;
	while (v >= base && i < units.length - 1) { v /= base; i++; }
	return (i === 0 || v >= 100 ? Math.round(v) : v.toPrecision(3)) + units[i];
};
const count = v => scaled(v, ["", " k", " M", " G", " T"], 1000);
const bits = v => scaled(8 * v, [" bit/s", " kbit/s", " Mbit/s", " Gbit/s"], 1000);
const bytes = v => scaled(v, [" B", " kB", " MB", " GB", " TB"], 1000);
const span = s => {
	const min = Math.round(s / 60), h = Math.floor(min / 60), days = Math.floor(h / 24);
	if (days > 1) return `${days} days`;
	return h ? `${h} h ${min % 60} min` : min ? `${min} min` : `${Math.max(1, Math.round(s))} s`;
};
const clock = unix => new Date(1000 * unix).toLocaleString([], { weekday: "short", hour: "2-digit", minute: "2-digit" });

/* The token comes behind the '#', which no server and no log sees, and stays in this tab. */
if (location.hash.length > 1) {
	sessionStorage.setItem("token", location.hash.slice(1));
	history.replaceState(null, "", "/");
}
const token = sessionStorage.getItem("token");

async function ask(path, options = {}) {
	const reply = await fetch(path, { cache: "no-store", ...options, headers: { Authorization: `Bearer ${token}`, ...options.headers } });
	if (reply.status === 401) throw Object.assign(new Error("token"), { locked: true });
	if (!reply.ok) throw new Error((await reply.text()).trim() || `HTTP ${reply.status}`);
	return reply;
}

/* ---- commands ---- */

async function command(request) {
	for (const b of el("buttons").children) b.disabled = true;
	el("said").textContent = "…";
	try {
		const reply = await ask("/v1/command", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request) });
		const answer = await reply.json();
		el("said").textContent = answer.text;
		el("said").className = answer.ok ? "" : "error";
	} catch (e) {
		el("said").textContent = e.message;
		el("said").className = "error";
	}
	shown = "";
	refresh();
}

const BUTTONS = [
	["consent", "Join", { command: "consent", yes: true }, s => s.terms],
	["consent", "Do not join", { command: "consent", yes: false }, s => s.terms],
	["pause", "Pause", { command: "pause" }, s => s.state !== "paused"],
	["pause", "Pause for 2 hours", { command: "pause", seconds: 7200 }, s => s.state !== "paused"],
	["resume", "Resume", { command: "resume" }, s => s.state === "paused"],
	["finish", "Finish after this round", { command: "finish" }, s => s.state !== "stopping" && s.state !== "done"],
];
let shown = "";
function buttons(s) {
	const wanted = BUTTONS.filter(b => (s.commands || []).includes(b[0]) && b[3](s)), key = wanted.map(b => b[1]).join();
	if (key === shown) return;
	shown = key;
	el("buttons").replaceChildren(...wanted.map(b => {
		const e = make("button", b[1]);
		e.type = "button";
		e.addEventListener("click", () => command(b[2]));
		return e;
	}));
}

/* ---- what is shown ---- */

function verdict(s) {
	if (s.terms) return ["warn", "Shall this computer join?", "Nothing is spent before you say so, here or in the terminal."];
	if (s.state === "paused") return ["warn", "Paused", s.text + (s.allowed?.until ? ` Until ${clock(s.allowed.until)}.` : "")];
	if (s.state === "done") return ["good", "Yes – and the run is done. Thank you!", s.text];
	const r = s.last_round;
	if (!r && s.given.rounds > 0) return ["good", "Yes", `${s.text} Earlier rounds counted this computer.`];
	if (!r) return ["warn", "Not yet", s.waits_for || s.text];
	if (r.counted) return ["good", `Yes: round ${r.round + 1} counted this computer`, s.text];
	return ["warn", `Not in round ${r.round + 1}`, `${r.why_not}. ${s.text}`];
}

function facts(id, list) {
	el(id).replaceChildren(...list.filter(f => f[1]).flatMap(f => [make("dt", f[0]), make("dd", f[1])]));
}

function show(s) {
	const v = verdict(s), p = s.progress, run = s.run, used = s.allowed || {};
	el("name").textContent = run.name || "Rivulet";
	el("verdict").className = v[0];
	el("verdict").textContent = v[1];
	el("detail").textContent = v[2];
	el("trouble").hidden = !s.trouble;
	el("trouble").textContent = s.trouble || "";
	const done = p && run.rounds ? Math.min(1, (p.round + p.step / p.steps_per_round) / run.rounds) : 0;
	el("bar").firstElementChild.style.width = `${100 * done}%`;
	el("bar").setAttribute("aria-label", `the run is ${Math.round(100 * done)} % done`);
	el("rounds").textContent = count(s.given.rounds);
	el("tokens").textContent = count(s.given.tokens);
	el("share").textContent = s.given.share === null ? "–" : `${(100 * s.given.share).toPrecision(3)} %`;
	el("today").textContent = used.bytes_today === undefined ? "–" : bytes(used.bytes_today) + (used.max_per_day ? ` of ${bytes(used.max_per_day)}` : "");
	el("month").textContent = used.bytes_this_month === undefined ? "–" : bytes(used.bytes_this_month) + (used.max_per_month ? ` of ${bytes(used.max_per_month)}` : "");
	el("left").textContent = s.state === "done" ? "done" : p && p.eta_s !== null ? span(p.eta_s) : "–";
	const line = s.line;
	facts("computer", [
		["computes on", p && p.device],
		["speed", p && p.tokens_per_s ? `${count(p.tokens_per_s)} tokens/s` : ""],
		["line, measured", line ? [line.up_bytes_per_s && `${bits(line.up_bytes_per_s)} up`, line.down_bytes_per_s && `${bits(line.down_bytes_per_s)} down`].filter(Boolean).join(", ") : ""],
		["limits", line && (line.max_up || line.max_down) ? [line.max_up && `${bits(line.max_up)} up`, line.max_down && `${bits(line.max_down)} down`].filter(Boolean).join(", ") : ""],
		["since the start", line ? `${bytes(line.sent_bytes)} sent, ${bytes(line.received_bytes)} received, in ${span(s.running_s)}` : ""],
		["member", s.member !== null ? String(s.member) : ""],
		["directory", s.dir]]);
	facts("run", [
		["purpose", run.purpose], ["operator", run.operator], ["license of the text", run.text_license], ["license of the model", run.model_license], ["the model will be at", run.model_at],
		["rounds done", p && run.rounds ? `${p.round} of ${run.rounds}, ${p.participants || "no"} computers in the last exchange` : ""],
		["model", run.parameters ? `${count(run.parameters)} parameters` : ""], ["coordinator", run.coordinator], ["number", run.id]]);
	el("question").hidden = !s.terms;
	el("terms").textContent = s.terms || "";
	buttons(s);
	sampler(s);
	document.title = `${v[1]} – Rivulet`;
}

let drawn = "";
async function chart(s) {
	const last = list => (list || []).at(-1), width = el("chart").clientWidth;
	const wanted = [width, last(s.training), last(s.heldout)].join();
	if (wanted === drawn || ((s.training || []).length < 2 && (s.heldout || []).length < 2)) return;
	el("chart").innerHTML = await (await ask(`/v1/chart?width=${width}`)).text(); /* numbers only */
	drawn = wanted;
	el("note").textContent = (s.heldout || []).length > 1
		? "The loss in nats per token: lower is better. On held-out text, which nobody trains on, as the member claims that measures it, and in this computer’s own training."
		: "The loss in nats per token in this computer’s own training: lower is better. The loss on held-out text follows when a member has measured it.";
}

/* ---- the box to try the model ---- */

let writing = false;
function sampler(s) {
	el("sampler").hidden = !s.sample;
	if (!s.sample) return;
	el("go").disabled = writing || !s.sample.available;
	el("why").textContent = s.sample.available ? `The model after ${s.sample.round} round${s.sample.round === 1 ? "" : "s"}. It runs on the processor at low priority, ${s.sample.tokens} tokens and ${s.sample.seconds} s at most.` : s.sample.why;
}
el("try").addEventListener("submit", async event => {
	event.preventDefault();
	writing = true;
	el("go").disabled = true;
	el("written").textContent = "…";
	try {
		const reply = await ask("/v1/sample", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ prompt: el("prompt").value }) });
		const answer = await reply.json();
		el("written").className = answer.ok ? "" : "error";
		if (answer.ok) el("written").replaceChildren(make("b", el("prompt").value), document.createTextNode(answer.text));
		else el("written").textContent = answer.text;
	} catch (e) {
		el("written").textContent = e.message;
		el("written").className = "error";
	}
	writing = false;
	refresh();
});

/* ---- again and again ---- */

function lock(text) {
	el("locked").textContent = text;
	el("locked").hidden = false;
	el("all").hidden = true;
	el("updated").textContent = "";
}

let timer;
async function refresh() {
	clearTimeout(timer);
	let wait = 1000;
	try {
		const s = await (await ask("/v1/status")).json();
		show(s);
		el("locked").hidden = true;
		el("all").hidden = false;
		await chart(s);
		el("updated").textContent = `updated ${new Date().toLocaleTimeString()}`;
		el("updated").className = "";
	} catch (e) {
		if (e.locked) lock("This page belongs to an earlier start of the worker, or the address is not whole. Open the address that rivulet-worker status prints.");
		else el("updated").textContent = `the worker does not answer: it has ended, or is about to start (${e.message})`;
		el("updated").className = "error";
		wait = 3000;
	}
	timer = setTimeout(refresh, wait);
}
if (token) refresh();
else lock("The address is not whole: it ends with #, followed by 32 digits. Open the one that rivulet-worker status prints.");
