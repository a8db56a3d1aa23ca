/* Draws the page's figures with Chart.js over their plain pictures, which stay where this does not run. */
"use strict";
(() => {
	const root = document.documentElement;
	const data = JSON.parse(document.getElementById("figures").textContent);
	const colour = name => getComputedStyle(root).getPropertyValue(name).trim();
	const maxBars = 12;

	const scaled = (v, units) => {
		let k = 0;
		for (; Math.abs(v) >= 999.5 && k < units.length - 1; k++)
			v /= 1000;
		return parseFloat(v.toPrecision(3)) + units[k];
	};
	const two = v => String(v).padStart(2, "0");
	const seconds = v => {
		const s = Math.round(v);
		if (v < 60)
			return parseFloat(v.toPrecision(3)) + " s";
		if (s < 3600)
			return `${Math.floor(s / 60)}:${two(s % 60)} min`;
		return `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)} h`;
	};
	const formats = {
		bytes: v => scaled(v, [" B", " kB", " MB", " GB", " TB"]),
		si: v => scaled(v, ["", "k", "M", "G", "T"]),
		seconds,
		plain: v => String(parseFloat(v.toPrecision(4))),
	};
	/* Where names differ is mostly the end. */
	const cut = text => text.length > 36 ? text.slice(0, 14) + "…" + text.slice(-21) : text;

	/* 1, 2 and 5 times powers of ten; the powers alone where they are many; the values where there is none of these. */
	const logTicks = values => axis => {
		const decades = Math.log10(axis.max / axis.min), ticks = [];
		for (let k = Math.floor(Math.log10(axis.min)); k <= Math.ceil(Math.log10(axis.max)); k++)
			for (const lead of decades < 3 ? [1, 2, 5] : [1])
				ticks.push(lead * 10 ** k);
		const within = ticks.filter(v => v >= axis.min && v <= axis.max);
		axis.ticks = (within.length > 0 ? within : values).map(value => ({value}));
	};

	/* Few values, as of H, are ticks themselves. */
	const valueTicks = values => axis => {
		axis.ticks = values.map(value => ({value}));
	};

	const errorBars = {
		id: "errorBars",
		afterDatasetsDraw(chart) {
			const {ctx, scales: {x, y}} = chart;
			chart.data.datasets.forEach((set, i) => {
				if (!set.hasBars || !chart.isDatasetVisible(i))
					return;
				ctx.save();
				ctx.strokeStyle = set.borderColor;
				ctx.lineWidth = 1.5;
				const every = Math.ceil(set.data.length / maxBars);
				set.data.forEach((point, k) => {
					if (!(point.sd > 0) || (set.data.length - 1 - k) % every !== 0)
						return;
					const at = x.getPixelForValue(point.x);
					const high = y.getPixelForValue(point.y + point.sd), low = y.getPixelForValue(point.y - point.sd);
					ctx.beginPath();
					ctx.moveTo(at - 4, high);
					ctx.lineTo(at + 4, high);
					ctx.moveTo(at, high);
					ctx.lineTo(at, low);
					ctx.moveTo(at - 4, low);
					ctx.lineTo(at + 4, low);
					ctx.stroke();
				});
				ctx.restore();
			});
		},
	};

	/* Crosses at the top edge, for what has no place in the plane. */
	const marksOf = figure => ({
		id: "marks",
		afterDatasetsDraw(chart) {
			const {ctx, chartArea, scales: {x}} = chart, half = 4, at = chartArea.top + half + 1;
			for (const mark of figure.marks) {
				if (!chart.isDatasetVisible(mark.series))
					continue;
				const middle = x.getPixelForValue(mark.x);
				ctx.save();
				ctx.strokeStyle = chart.data.datasets[mark.series].borderColor;
				ctx.lineWidth = 2;
				ctx.beginPath();
				ctx.moveTo(middle - half, at - half);
				ctx.lineTo(middle + half, at + half);
				ctx.moveTo(middle + half, at - half);
				ctx.lineTo(middle - half, at + half);
				ctx.stroke();
				ctx.restore();
			}
		},
	});

	const axis = (text, more) => ({
		title: {display: text !== "", text, color: colour("--fg")},
		grid: {color: colour("--grid"), borderColor: colour("--muted")},
		...more,
		ticks: {color: colour("--muted"), maxRotation: 0, autoSkipPadding: 12, ...more.ticks},
	});

	const common = () => ({
		animation: false,
		responsive: true,
		maintainAspectRatio: false,
		interaction: {mode: "nearest", intersect: false},
	});

	const legend = more => ({position: "bottom", labels: {color: colour("--fg"), boxWidth: 24, boxHeight: 2, ...more}});

	const lineSet = series => ({
		label: series.label,
		data: series.x.map((x, k) => ({x, y: series.y[k], sd: series.sd[k]})),
		hasBars: series.sd.some(v => v > 0),
		borderColor: colour(series.color),
		backgroundColor: colour(series.color),
		borderDash: series.dashes ? series.dashes.split(" ").map(Number) : [],
		borderWidth: 2,
		pointBackgroundColor: colour(series.dashes ? "--bg" : series.color),
		pointRadius: series.x.length > 25 ? 0 : 3,
		pointHitRadius: 8,
	});

	const lineOptions = figure => {
		const points = figure.series.flatMap(s => s.x.map((x, k) => ({x, low: s.y[k] - (s.sd[k] || 0), high: s.y[k] + (s.sd[k] || 0)})));
		const values = [...new Set([...points, ...figure.marks].map(p => p.x))].sort((a, b) => a - b);
		const format = formats[figure.unit];
		const x = {type: figure.log ? "logarithmic" : "linear", ticks: {callback: v => format(v)}};
		if (figure.log) {
			x.min = values[0] / 1.15;
			x.max = values[values.length - 1] * 1.15;
			x.afterBuildTicks = figure.unit === "si" && values.length <= 12 ? valueTicks(values) : logTicks(values);
		} else {
			x.min = 0;
		}
		const tell = item => {
			const {x: at, y, sd} = item.raw;
			return `${item.dataset.label}: ${formats.plain(y)}${sd > 0 ? " ± " + sd.toPrecision(2) : ""} at ${format(at)}`;
		};
		return {
			...common(),
			scales: {
				x: axis(figure.xLabel, x),
				y: axis(figure.yLabel, {
					grace: "4%",
					suggestedMin: Math.min(...points.map(p => p.low)),
					suggestedMax: Math.max(...points.map(p => p.high)),
					ticks: {callback: v => formats.plain(v)},
				}),
			},
			plugins: {
				legend: {display: false}, /* the page's own has room for whole names */
				tooltip: {callbacks: {title: () => "", label: tell}},
			},
		};
	};

	const lines = (canvas, figure) => new Chart(canvas, {
		type: "line",
		data: {datasets: figure.series.map(lineSet)},
		options: lineOptions(figure),
		plugins: [errorBars, marksOf(figure)],
	});

	const bars = (canvas, figure) => new Chart(canvas, {
		type: "bar",
		data: {
			labels: figure.names.map(cut),
			datasets: figure.parts.map((part, i) => ({label: part.label, data: part.values, backgroundColor: colour(`--p${i}`)})),
		},
		options: {
			...common(),
			indexAxis: "y",
			interaction: {mode: "nearest", axis: "y", intersect: false},
			scales: {
				x: axis("time", {stacked: true, ticks: {callback: v => formats[figure.unit](v)}}),
				y: axis("", {stacked: true, ticks: {autoSkip: false}}),
			},
			plugins: {
				legend: legend({boxHeight: 10, boxWidth: 14}),
				tooltip: {callbacks: {label: item => `${item.dataset.label}: ${formats[figure.unit](item.raw)}`}},
			},
		},
	});

	const heightOf = figure => figure.parts ? 110 + 26 * figure.names.length : 340; /* pixels */

	/* A name in the legend hides its line, and shows it again. */
	const follow = (place, chart) => place.querySelectorAll(".legend li").forEach((name, i) => {
		name.onclick = () => {
			chart.setDatasetVisibility(i, !chart.isDatasetVisible(i));
			name.classList.toggle("off", !chart.isDatasetVisible(i));
			chart.update();
		};
		name.classList.remove("off");
	});

	const charts = [];
	const draw = figure => {
		const place = document.getElementById(figure.id);
		const plot = place.querySelector(".plot"), picture = place.querySelector("svg");
		if (figure.series && !figure.series.some(s => s.x.length > 0))
			return;
		try {
			plot.hidden = false;
			picture.setAttribute("hidden", "");
			plot.style.height = heightOf(figure) + "px";
			charts.push((figure.parts ? bars : lines)(plot.querySelector("canvas"), figure));
			follow(place, charts[charts.length - 1]);
			place.dataset.drawn = "yes";
		} catch (fault) {
			plot.hidden = true;
			picture.removeAttribute("hidden");
			console.error(fault);
		}
	};
	const drawAll = () => {
		while (charts.length > 0)
			charts.pop().destroy();
		data.forEach(draw);
	};
	Chart.defaults.font.family = "system-ui, sans-serif";
	drawAll();
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
})();
