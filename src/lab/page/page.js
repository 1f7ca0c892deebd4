// SPDX-License-Identifier: MIT
// The plots of a report. The series stand in the page as JSON, columns of numbers for each
// case; names stand in its text. Each plot is drawn by a table of lines; panels of one group
// zoom and point together. For whoever wants to check: window.sluice has what was drawn.
(function () {
'use strict';

const DATA = JSON.parse(document.getElementById('data').textContent);
const CASES = [...document.querySelectorAll('details.case')].map(element => ({
	element,
	label: element.dataset.label,
	...DATA.cases[element.dataset.case],
}));
const drawn = [];
window.sluice = { data: DATA, plots: drawn };

const SOLID = [], DASHED = [6, 4], DOTTED = [1.5, 3.5], DASH_DOT = [7, 3, 1.5, 3];
// The colours of the second of two cases that lie over each other; without one it is dashed.
const SECOND = { '--write': '--write-b', '--ink': '--write-b', '--read': '--read-b', '--alarm': '--alarm-b' };
const ORDERS = ['4 KiB', '8 KiB', '16 KiB', '32 KiB', '64 KiB', '128 KiB', '256 KiB', '512 KiB',
	'1 MiB', '2 MiB'];
// Classes of requests: in the column's name, and for people.
const SIZES = [...[4, 8, 16, 32, 64, 128, 256, 512].map(kib => [`${kib}k`, `${kib} KiB`]), ['1m', '1 MiB'],
	['larger', 'larger']];

const line = (column, label, color, more) => ({ column, label, color, width: 1.5, dash: SOLID, ...more });
const limit = (column, label, dash) => line(column, label, '--limit', { dash, width: 1, limit: true });

const PLOTS = [
	{ id: 'dirty', title: 'Dirty memory', unit: 'bytes', tall: true, lines: [
		line('dirty_bytes', 'charged', '--charged', { width: 7 }),
		line('pinned_bytes', 'pinned', '--pinned'),
		line('debt_bytes', 'debt', '--debt'),
		limit('background_bytes', 'background', DOTTED),
		limit('freerun_bytes', 'free run', DASH_DOT),
		limit('setpoint_bytes', 'setpoint', DASHED),
		limit('limit_bytes', 'limit', SOLID)] },
	{ id: 'dontcache', title: 'Backlog of DONTCACHE', unit: 'bytes', lines: [
		line('dontcache_bytes', 'dirty, to be dropped', '--debt')] },
	{ id: 'charge', title: 'Charged, dirtied, written back', unit: 'bytes/s', log: true, lines: [
		line('charged_bytes_per_s', 'charged', '--ink'),
		line('dirtied_bytes_per_s', 'dirtied', '--debt'),
		line('written_bytes_per_s', 'written back', '--limit')] },
	{ id: 'throughput', title: 'Throughput', unit: 'I/Os a second', lines: [
		line('write_iops', 'writes', '--write'),
		line('read_iops', 'reads', '--read')] },
	{ id: 'bandwidth', title: 'Throughput', unit: 'bytes/s', lines: [
		line('write_bytes_per_s', 'written', '--write'),
		line('read_bytes_per_s', 'read', '--read')] },
	{ id: 'latency', title: 'Latency of calls', unit: 'ms', log: true, lines: [
		line('write_p50_ms', 'write median', '--write', { dash: DOTTED }),
		line('write_p99_ms', 'write p99', '--write'),
		line('write_max_ms', 'write longest', '--write', { dash: DASHED, width: 1 }),
		line('read_p50_ms', 'read median', '--read', { dash: DOTTED }),
		line('read_p99_ms', 'read p99', '--read'),
		line('read_max_ms', 'read longest', '--read', { dash: DASHED, width: 1 })] },
	{ id: 'fsync', title: 'Latency of fsyncs', unit: 'ms', log: true, lines: [
		line('fsync_p50_ms', 'median', '--write', { dash: DOTTED }),
		line('fsync_p99_ms', 'p99', '--write'),
		line('fsync_max_ms', 'longest', '--write', { dash: DASHED, width: 1 })] },
	{ id: 'sleep', title: 'Throttle', unit: 'writers asleep', unit2: 'pause, ms', lines: [
		line('writers_asleep', 'asleep', '--alarm', { fill: true }),
		line('mean_pause_ms', 'mean pause', '--soft', { axis: 2, points: true })] },
	{ id: 'tenants', title: 'Dirty memory of tenants', unit: 'bytes', tenants: true, lines: [
		line('dirty_bytes', '', 0), line('limit_bytes', ' (limit)', 0, { dash: DOTTED, width: 1 })] },
	{ id: 'tenants-written', title: 'Written back of tenants', unit: 'bytes/s', tenants: true, lines: [
		line('written_bytes_per_s', '', 0)] },
	{ id: 'tenants-asleep', title: 'Throttle of tenants', unit: 'writers asleep', tenants: true, lines: [
		line('writers_asleep', '', 0)] },
	{ id: 'device', title: 'Device', unit: 'I/Os a second', unit2: 'busy, %', most2: 100, devices: true, lines: [
		line('device_busy_percent', 'busy', '--busy', { axis: 2, fill: true, width: 1 }),
		line('device_writes_per_s', 'writes', '--write'),
		line('device_reads_per_s', 'reads', '--read')] },
	{ id: 'sizes', title: 'Size of the device\'s writes', unit: 'bytes', devices: true, lines: [
		line('device_write_bytes', 'mean', '--write', { points: true })] },
	{ id: 'requests', title: 'The device\'s writes, by size', unit: 'I/Os a second', stacked: true, devices: true,
	  lines: SIZES.map((size, i) => line(`device_writes_${size[0]}_per_s`, size[1], i, { width: .5 })) },
	{ id: 'orders', title: 'Cached, by size of folio', unit: 'bytes', stacked: true,
	  lines: ORDERS.map((size, order) => line('order' + order + '_bytes', size, order, { width: .5 })) },
];

// --- colours and numbers

function css(name) {
	return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function channels(hex) {
	return [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
}

// The colour of a line; a number is an order, on the way from the first to the last.
function color(of) {
	if (typeof of === 'string')
		return css(of);
	const from = channels(css('--order-first')), to = channels(css('--order-last'));
	return `rgb(${from.map((c, i) => Math.round(c + (to[i] - c) * of / (ORDERS.length - 1)))})`;
}

function digits(x) {
	const size = Math.abs(x);
	if (x === null || Number.isNaN(x))
		return '\u2013';
	if (size === 0)
		return '0';
	if (size >= 1000)
		return Math.round(x).toLocaleString('en-US');
	return String(+x.toPrecision(3));
}

// By how much to divide the values of a plot, and the name of the unit that gives.
function scaleOf(plot, most) {
	const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	let step = 0, by = 1;
	if (!plot.unit.startsWith('bytes'))
		return { by: 1, unit: plot.unit };
	while (most / by >= 1000 && step < names.length - 1) {
		by *= 1024;
		step++;
	}
	return { by, unit: names[step] + plot.unit.slice('bytes'.length) };
}

// --- data

// The column of a line: of the case, or of the tenant, or, where it has several, of the device the
// line is of.
function columnOf(c, l) {
	if (l.tenant !== undefined)
		return c.tenants && c.tenants[l.tenant] && c.tenants[l.tenant][l.column];
	const of = l.device === undefined ? c.series : c.devices ? c.devices[l.device]
		: l.device === 0 ? c.series : undefined;
	return of && of[l.column];
}

// The lines of a plot that a case has data for.
function linesOf(plot, c) {
	return plot.lines.filter(l => columnOf(c, l));
}

// The case of these that has most devices, or tenants.
function largestOf(cases, what) {
	return cases.reduce((a, b) => (b[what] || []).length > (a[what] || []).length ? b : a);
}

// A plot of the device, for each device where there are several.
function ofDevices(plot, c) {
	return !c.devices ? [plot] : c.devices.map((_, device) => ({ ...plot, id: `${plot.id}-${device}`,
		title: `${c.element.getAttribute('data-device-' + device)}: ${plot.title}`,
		lines: plot.lines.map(l => ({ ...l, device })) }));
}

// A plot of tenants, with the lines of each; the colours are steps on the way of a scale.
function ofTenants(plot, c) {
	const names = (c.tenants || []).map((_, i) => c.element.getAttribute('data-tenant-' + i));
	const step = (ORDERS.length - 1) / Math.max(names.length - 1, 1);
	return { ...plot, lines: names.flatMap((name, tenant) => plot.lines.map(l => ({ ...l, tenant,
		label: name + l.label, color: tenant * step }))) };
}

// The plots of some cases: those that any case of the page has something for.
function plotsOf(cases) {
	const devices = largestOf(cases, 'devices'), tenants = largestOf(cases, 'tenants');
	return PLOTS.flatMap(plot => plot.devices ? ofDevices(plot, devices)
		: plot.tenants ? [ofTenants(plot, tenants)] : [plot])
		.filter(plot => CASES.some(c => linesOf(plot, c).length));
}

// A point without a value is a gap; dygraphs wants NaN for it, null for "not my row".
function valueAt(c, l, row, by) {
	const value = columnOf(c, l)[row];
	return value === null ? NaN : value / by;
}

function largest(cases, plot, axis) {
	let most = 0;
	for (const c of cases)
		for (const l of linesOf(plot, c))
			if ((l.axis || 1) === axis && !plot.stacked)
				for (const v of columnOf(c, l))
					most = Math.max(most, v);
	if (plot.stacked)
		for (const c of cases)
			for (let row = 0; c.series && row < c.series.t_s.length; row++)
				most = Math.max(most, linesOf(plot, c).reduce(
					(sum, l) => sum + columnOf(c, l)[row], 0));
	return most;
}

// Rows of time and one value for each line of each case; times of all cases together.
function rowsOf(cases, lines, by) {
	const at = new Map();
	cases.forEach((c, which) => c.series.t_s.forEach((t, row) => {
		if (!at.has(t))
			at.set(t, [t, ...lines.map(() => null)]);
		lines.forEach((l, i) => {
			if (l.which === which)
				at.get(t)[i + 1] = valueAt(c, l, row, l.axis === 2 ? 1 : by);
		});
	}));
	return [...at.values()].sort((a, b) => a[0] - b[0]);
}

// --- panels

function make(tag, className, text) {
	const element = document.createElement(tag);
	if (className)
		element.className = className;
	if (text !== undefined)
		element.textContent = text;
	return element;
}

function swatch(l) {
	const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
	const path = document.createElementNS('http://www.w3.org/2000/svg', 'line');
	for (const [key, value] of [['width', 20], ['height', 9]])
		svg.setAttribute(key, value);
	for (const [key, value] of [['x1', 0], ['x2', 20], ['y1', 4.5], ['y2', 4.5],
		['stroke', color(l.color)], ['stroke-width', typeof l.color === 'number' ? 8 : Math.max(l.width, 1.5)],
		['stroke-dasharray', l.dash.join(' ')]])
		path.setAttribute(key, value);
	svg.append(path);
	return svg;
}

// The name of each line with its value under the pointer; a click hides the line.
function addKeys(panel, into) {
	panel.keys = panel.lines.map((l, i) => {
		const key = make('button', 'key'), value = make('output');
		key.type = 'button';
		key.setAttribute('aria-pressed', 'true');
		key.append(swatch(l), l.name, value);
		key.addEventListener('click', () => {
			const on = key.getAttribute('aria-pressed') !== 'true';
			key.setAttribute('aria-pressed', String(on));
			panel.graph.setVisibility(i, on);
		});
		into.append(key);
		return value;
	});
}

function point(panel, x) {
	const rows = panel.rows, cursor = panel.cursor;
	let low = 0, high = rows.length - 1;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (rows[middle][0] < x)
			low = middle + 1;
		else
			high = middle;
	}
	if (low && x - rows[low - 1][0] < rows[low][0] - x)
		low--;
	panel.graph.setSelection(low);
	panel.keys.forEach((key, i) => { key.textContent = digits(rows[low][i + 1]); });
	panel.of.textContent = `${panel.about} at ${rows[low][0].toFixed(2)} s`;
	cursor.style.display = 'block';
	cursor.style.left = panel.graph.toDomXCoord(rows[low][0]) + 'px';
	cursor.style.height = panel.graph.getArea().h + 'px';
}

function pointNowhere(panel) {
	panel.graph.clearSelection();
	panel.keys.forEach(key => { key.textContent = ''; });
	panel.of.textContent = panel.about;
	panel.cursor.style.display = 'none';
}

// All panels of a group show the same stretch of time, those of one plot the same values.
function follow(group, from) {
	if (group.busy)
		return;
	group.busy = true;
	for (const panel of group.panels)
		if (panel !== from && panel.graph)
			panel.graph.updateOptions({ dateWindow: from.graph.xAxisRange(),
				...(panel.plot === from.plot ? { valueRange: from.graph.yAxisRange(0) } : {}) });
	group.busy = false;
}

function zoomOut(group) {
	group.busy = true;
	for (const panel of group.panels)
		if (panel.graph)
			panel.graph.updateOptions({ dateWindow: null, valueRange: panel.range });
	group.busy = false;
}

// What dygraphs is told of the lines, under the names of its columns.
function seriesOptions(panel) {
	const series = {};
	panel.lines.forEach((l, i) => {
		series['y' + i] = {
			color: color(l.color),
			strokeWidth: l.width,
			strokePattern: l.dash.length ? l.dash : null,
			fillGraph: Boolean(l.fill) || Boolean(panel.plot.stacked),
			drawPoints: Boolean(l.points),
			pointSize: 1.2,
			axis: l.axis === 2 ? 'y2' : 'y',
			highlightCircleSize: l.limit ? 0 : 3,
		};
		if (l.points)
			series['y' + i].strokeWidth = 0;
	});
	return series;
}

function options(panel, group) {
	const plot = panel.plot, two = panel.lines.some(l => l.axis === 2);
	const axis = { axisLabelFormatter: digits, axisLineColor: css('--faint'), gridLineColor: css('--grid') };
	return {
		labels: ['t', ...panel.lines.map((l, i) => 'y' + i)],
		series: seriesOptions(panel),
		legend: 'never',
		logscale: Boolean(plot.log),
		stackedGraph: Boolean(plot.stacked),
		fillAlpha: plot.stacked ? .92 : .35,
		connectSeparatedPoints: true,
		valueRange: panel.range,
		xRangePad: 0,
		rightGap: two ? 5 : 45, // so that all panels are as wide
		labelsKMB: false,
		axes: {
			x: { ...axis, drawGrid: false, pixelsPerLabel: 70, axisLabelFormatter: t => digits(t) + ' s' },
			y: { ...axis, axisLabelWidth: 48, pixelsPerLabel: 34,
				...(plot.log ? { ticker: logTicks } : {}) },
			...(two ? { y2: { ...axis, axisLabelWidth: 40, drawGrid: false, independentTicks: true,
				valueRange: panel.range2 } } : {}),
		},
		highlightCallback: (event, x) => group.panels.forEach(p => p.graph && point(p, x)),
		unhighlightCallback: () => group.panels.forEach(p => p.graph && pointNowhere(p)),
		drawCallback: (graph, first) => { if (!first) follow(group, panel); },
		interactionModel: { ...Dygraph.defaultInteractionModel, dblclick: () => zoomOut(group) },
	};
}

// One figure: these cases in this plot, with the scale that fits all of `beside`.
function addPanel(into, group, plot, cases, beside) {
	const figure = make('figure', plot.tall ? 'tall' : ''), caption = make('figcaption');
	const title = make('span'), keys = make('div', 'keys'), canvas = make('div', 'canvas');
	const scale = scaleOf(plot, largest(beside, plot, 1));
	const panel = { plot, cursor: make('div', 'cursor'), lines: [] };
	cases.forEach((c, which) => linesOf(plot, c).forEach(l => {
		if (which && l.limit)
			return;
		panel.lines.push({ ...l, which, color: which && SECOND[l.color] || l.color,
			dash: which && !SECOND[l.color] ? DASHED : l.dash,
			name: cases.length > 1 && !l.limit ? `${c.label}: ${l.label}` : l.label });
	}));
	const two = panel.lines.some(l => l.axis === 2);
	title.append(make('b', '', plot.title), ' ',
		make('span', 'unit', scale.unit + (two ? ' \u00b7 right: ' + plot.unit2 : '')));
	panel.about = cases.map(c => c.label).join(', ');
	panel.of = make('span', 'of', panel.about);
	caption.append(title, panel.of);
	figure.append(caption, keys, canvas);
	into.append(figure);
	if (!panel.lines.length) {
		canvas.append(make('div', 'nothing', 'none in this case'));
		return;
	}
	addKeys(panel, keys);
	panel.rows = rowsOf(cases, panel.lines, scale.by);
	panel.range = plot.log ? logRange(beside, plot, scale.by) : [0, 1.06 * largest(beside, plot, 1) / scale.by || 1];
	panel.range2 = [0, 1.06 * (plot.most2 || largest(beside, plot, 2)) || 1];
	group.panels.push(panel);
	panel.graph = new Dygraph(canvas, panel.rows, options(panel, group));
	canvas.append(panel.cursor);
	drawn.push(record(panel, cases, scale));
}

// All values above 0, with some room around them.
function logRange(cases, plot, by) {
	let least = Infinity, most = largest(cases, plot, 1);
	for (const c of cases)
		for (const l of linesOf(plot, c))
			for (const v of columnOf(c, l))
				if (v > 0)
					least = Math.min(least, v);
	return most > 0 ? [.7 * least / by, 1.6 * most / by] : [.1, 1];
}

// Marks at powers of ten, and between them where there are few.
function logTicks(low, high) {
	const ticks = [], steps = high / low > 200 ? [1] : high / low > 20 ? [1, 3] : [1, 2, 5];
	for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
		for (const step of steps) {
			const v = step * 10 ** power;
			if (v >= low && v <= high)
				ticks.push({ v, label: digits(+v.toPrecision(3)) });
		}
	return ticks;
}

function record(panel, cases, scale) {
	return {
		plot: panel.plot.id,
		graph: panel.graph,
		lines: panel.lines.map(l => ({ column: l.column, device: l.device, tenant: l.tenant, case: CASES.indexOf(cases[l.which]),
			scale: l.axis === 2 ? 1 : scale.by })),
		rows: () => panel.graph.numRows(),
		value: (row, column) => panel.graph.getValue(row, column),
	};
}

function clear(element) {
	for (let i = drawn.length - 1; i >= 0; i--) {
		if (!element.contains(drawn[i].graph.graphDiv))
			continue;
		drawn[i].graph.destroy();
		drawn.splice(i, 1);
	}
	element.replaceChildren();
}

// --- the page

function drawCase(c) {
	const into = c.element.querySelector('.plots'), group = { panels: [] };
	if (!into || !c.element.open || !c.series)
		return;
	clear(into);
	for (const plot of plotsOf([c]))
		addPanel(into, group, plot, [c], [c]);
}

function setUpCases() {
	for (const c of CASES)
		c.element.addEventListener('toggle', () => {
			const into = c.element.querySelector('.plots');
			if (into && c.element.open && !into.childElementCount)
				drawCase(c);
		});
	const show = () => {
		const wanted = location.hash.slice(1);
		for (const c of CASES)
			if (wanted === 'all' || wanted === c.element.id)
				c.element.open = true;
	};
	addEventListener('hashchange', show);
	show();
	CASES.forEach(drawCase); // one that is open from the start tells nobody of it
	document.querySelectorAll('.copy').forEach(button => button.addEventListener('click', () => {
		const text = button.parentElement.querySelector('code');
		getSelection().selectAllChildren(text);
		document.execCommand('copy');
		button.textContent = 'copied';
	}));
}

function setUpCompare() {
	const section = document.getElementById('compare');
	const able = CASES.filter(c => c.series);
	if (!section)
		return () => {};
	const [a, b] = ['case-a', 'case-b'].map(id => document.getElementById(id));
	const into = section.querySelector('.plots');
	const buttons = [...section.querySelectorAll('.segment button')];
	for (const select of [a, b])
		able.forEach((c, i) => select.append(new Option(c.label, i)));
	a.value = section.dataset.a;
	b.value = section.dataset.b;
	const draw = () => {
		const overlaid = buttons[1].getAttribute('aria-pressed') === 'true';
		const two = [able[a.value], able[b.value]], group = { panels: [] };
		clear(into);
		for (const plot of plotsOf(two)) {
			if (overlaid && !plot.stacked && two[0] !== two[1])
				addPanel(into, group, plot, two, two);
			else
				two.forEach(c => addPanel(into, group, plot, [c], two));
		}
	};
	buttons.forEach(button => button.addEventListener('click', () => {
		buttons.forEach(other => other.setAttribute('aria-pressed', String(other === button)));
		draw();
	}));
	a.addEventListener('change', draw);
	b.addEventListener('change', draw);
	draw();
	return draw;
}

setUpCases();
const drawCompare = setUpCompare();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
	drawCompare();
	CASES.forEach(drawCase);
});
window.sluice.ready = true;
})();
