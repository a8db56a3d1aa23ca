/* chart.js: what charts do where scripts run: show the text of the mark nearest to the pointer or finger, and hide a line
 * when its name in the legend is clicked. */
"use strict";
(() => {
	const reach = 40; /* pixels from the pointer to a mark */
	const tip = document.createElement("div");
	tip.className = "tip";
	document.documentElement.classList.add("live");

	/* The browser's own tooltip would cover ours. */
	const textOf = mark => {
		const title = mark.querySelector("title");
		if (title) {
			mark.setAttribute("aria-label", title.textContent);
			title.remove();
		}
		return mark.getAttribute("aria-label");
	};

	const distance = (mark, event) => {
		const box = mark.getBoundingClientRect();
		const outside = (at, low, high) => Math.max(low - at, 0, at - high);
		return Math.hypot(outside(event.clientX, box.left, box.right), outside(event.clientY, box.top, box.bottom));
	};

	const nearest = (svg, event) => {
		let found = null, least = reach;
		for (const mark of svg.querySelectorAll("circle,rect,.mark")) {
			const away = distance(mark, event);
			if (away < least && !mark.closest(".off") && textOf(mark)) {
				found = mark;
				least = away;
			}
		}
		return found;
	};

	const tell = event => {
		const svg = event.target.closest?.("svg"), mark = svg && nearest(svg, event);
		if (!mark) {
			tip.remove();
			return;
		}
		tip.textContent = textOf(mark);
		document.body.append(tip);
		const right = scrollX + document.documentElement.clientWidth - tip.offsetWidth - 4;
		tip.style.left = `${Math.max(0, Math.min(event.pageX + 12, right))}px`;
		tip.style.top = `${event.pageY + 16}px`;
	};

	const toggle = event => {
		const name = event.target.closest?.(".legend li");
		if (!name)
			return;
		const series = [...name.parentNode.children].indexOf(name), off = name.classList.toggle("off");
		name.closest("figure").querySelectorAll(`.s${series}`).forEach(part => part.classList.toggle("off", off));
	};

	addEventListener("pointermove", tell);
	addEventListener("pointerdown", tell);
	addEventListener("click", toggle);
})();
