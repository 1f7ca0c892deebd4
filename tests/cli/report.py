# SPDX-License-Identifier: MIT
"""sluice lab --report: the page by itself, and in a headless Chromium."""
import html.parser
import json
import os
import re
import subprocess

import browser
import program
from program import SMALL, Skip, contains, equal, refused, sluice

PLOTS = ['dirty', 'charge', 'throughput', 'bandwidth', 'latency', 'sleep', 'device', 'sizes',
         'requests', 'orders']
HOSTILE = '</script><script>window.pwned = 1</script><img src=x onerror="pwned=2"> & \'q\' "Q"'


def report(*words, path=SMALL, name='r.html'):
    done = sluice('lab', path, '--report', name, *words)
    equal((done.status, done.err), (0, ''))
    with open(name, encoding='utf-8') as f:
        return f.read()


def series(page):
    """The series in the page, case by case."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return [c.get('series') for c in json.loads(found.group(1))['cases']]


def hostile_experiment():
    """The small experiment with titles, and in a folder, that try to break out of the page."""
    folder = "it's <b> & \"so\""
    os.mkdir(folder)
    for name in os.listdir(os.path.dirname(SMALL)):
        if name.startswith('small'):
            with open(os.path.join(os.path.dirname(SMALL), name)) as f:
                text = f.read()
            text = text.replace('title = Random writes into large folios, small',
                                'title = %s\nsource = %s' % (HOSTILE, HOSTILE))
            text = text.replace('[case sluice]', '[case sluice]\ntitle = ' + HOSTILE)
            with open(os.path.join(folder, name), 'w') as f:
                f.write(text)
    return os.path.join(folder, 'small.ini')


class Text(html.parser.HTMLParser):
    """The page as a browser takes it apart: tags with attributes, and the text outside of
    scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self.attributes = [], '', []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag,) + a for a in attributes]

    def handle_data(self, data):
        if self.tags[-1:] not in (['script'], ['style']):
            self.text += data


def test_predictions_do_not_depend_on_a_report():
    plain = program.figures(program.SLUICE, SMALL)
    report('--json', 'r.json')
    with open('r.json') as f:
        recorded = json.load(f)
    for case in recorded['cases']:
        del case['wall_s'], case['explanation'], case['decided_by']
    equal(recorded, plain)


def test_reports_come_out_the_same_again():
    equal(report('--jobs', '2'), report('--jobs', '1', name='again.html'))


def test_series_in_the_page_add_up_to_the_figures():
    predicted = [c['predicted'] for c in program.figures(program.SLUICE, SMALL)['cases']]
    found = series(report())
    equal(len(found), 2)
    for s, p in zip(found, predicted):
        times = s['t_s']
        equal(len({len(column) for column in s.values()}), 1)

        def total(column):
            values = s.get(column, [0] * len(times))
            return sum(values[i] * (times[i] - times[i - 1]) for i in range(1, len(times)))

        for column, key, unit in (
                ('device_writes_per_s', 'device_writes', 1),
                ('device_write_bytes_per_s', 'device_write_bytes', 1),
                ('charged_bytes_per_s', 'pages_charged', 4096),
                ('writers_asleep', 'throttle_sleep_s', 1)):
            assert abs(total(column) - p[key] * unit) <= 1e-6 * p[key] * unit, (column, p[key])
        equal(max(v for v in s['write_max_ms'] if v is not None), p['write_max_ms'])
        for level in ('dirty', 'debt', 'pinned'):
            assert 0 < max(s[level + '_bytes']) <= p['max_%s_bytes' % level], level


def test_the_page_says_how_to_get_each_case_again():
    page = Text(report('-c', 'baseline', '-s', 'vm.dirty_ratio=30', '-s', 'accounting=page',
                       '--seed', '7')).text
    contains(page, 'sluice lab %s -c baseline -s vm.dirty_ratio=30 -s accounting=page --seed 7'
             % SMALL)
    command = re.search(r'sluice lab .* --seed 1', Text(report(path=hostile_experiment())).text)
    again = subprocess.run(command.group().replace('sluice', program.SLUICE, 1) + ' --json -',
                           shell=True, stdout=subprocess.PIPE)
    equal(again.returncode, 0)
    equal([c['case'] for c in json.loads(again.stdout)['cases']], ['baseline'])


def test_text_of_experiments_is_only_text():
    page = Text(report(path=hostile_experiment()))
    equal(page.text.count(HOSTILE), 3)
    equal(page.tags.count('script'), 3)
    equal(page.tags.count('img') + page.tags.count('b'), 0)
    equal([a for a in page.attributes if a[1].startswith('on')], [])


def test_the_page_needs_nothing_else():
    page = Text(report())
    equal([a for a in page.attributes if a[1] in ('src', 'srcset', 'data', 'action')
           or a[0] == 'link'], [])
    equal([a for a in page.attributes if a[1] == 'href' and not a[2].startswith('#')], [])
    contains(page.text, 'Copyright (c) 2006, 2009, 2011, 2012, 2013, 2017 Dan Vanderkam')


def test_a_failed_case_stands_in_the_page():
    with open('e.ini', 'w') as f:
        f.write('[experiment]\nname = e\n[machine]\ncpus = 2\nmemory = 64M\n'
                '[device]\nmodel = memory\n[phase p]\nline = [reader]\nline = rw=read\n'
                'line = filename=nofile\nmeasure = yes\n[case bad]\n')
    done = sluice('lab', 'e.ini', '--report', 'r.html', '--explain')
    equal((done.status, done.out), (1, ''))
    with open('r.html') as f:
        page = f.read()
    contains(Text(page).text, 'case bad: phase p, job reader (e.ini:9): job reader needs a size')
    equal(series(page), [None])


def test_a_report_that_cannot_be_written_is_refused():
    os.mkdir('folder')
    refused(['lab', SMALL, '--report', 'folder'], 'sluice lab: --report folder: is a folder')
    refused(['lab', SMALL, '--report', 'no/r.html'],
            'sluice lab: --report no/r.html: the folder cannot be written: No such file or '
            'directory')
    refused(['lab', SMALL, '--report', ''], 'sluice lab: --report needs the name of a file, or "-"')
    equal(os.listdir('.'), ['folder'])


# --- in a browser

def opened(path='r.html', fragment=''):
    if not browser.find():
        raise Skip('chromium is not installed')
    page = browser.Page()
    page.open(os.path.abspath(path), fragment)
    return page


def clean(page):
    """Nothing was complained of, nothing else was asked for."""
    equal(page.ask('window.sluice.ready'), True)
    equal(page.errors, [])
    equal({r.split('#')[0] for r in page.requests}, {'file://' + os.path.abspath('r.html')})


def drawn(page):
    """What dygraphs itself holds, plot by plot: columns, cases and values."""
    return page.ask('''window.sluice.plots.map(p => ({plot: p.plot, lines: p.lines,
        rows: Array.from({length: p.rows()}, (_, r) =>
            Array.from({length: p.lines.length + 1}, (_, c) => {
                const v = p.value(r, c); return Number.isNaN(v) ? 'gap' : v; }))}))''')


def holds_the_series(plot, all_series):
    """Every value in the plot is that of its column in the page's series."""
    for at, line in enumerate(plot['lines'], 1):
        wanted = all_series[line['case']]
        values = dict(zip(wanted['t_s'], wanted[line['column']]))
        found = {row[0]: row[at] for row in plot['rows'] if row[at] is not None}
        equal(set(found), set(values))
        for t, value in values.items():
            if value is None:
                equal(found[t], 'gap')
            else:
                assert abs(found[t] * line['scale'] - value) <= 1e-9 * abs(value), (line, t)


def test_in_a_browser_two_cases_are_drawn_from_the_series():
    all_series = series(report())
    with opened() as page:
        clean(page)
        plots = drawn(page)
        # in the other case nobody sleeps and nothing is written, which leaves these plots empty
        empty = [('sleep', 1), ('device', 1), ('sizes', 1), ('requests', 1)]
        equal([(p['plot'], p['lines'][0]['case']) for p in plots],
              [(name, case) for name in PLOTS for case in (0, 1) if (name, case) not in empty])
        columns = {line['column'] for p in plots for line in p['lines']}
        for column in ('dirty_bytes', 'debt_bytes', 'pinned_bytes', 'background_bytes',
                       'freerun_bytes', 'setpoint_bytes', 'limit_bytes', 'write_iops',
                       'write_p50_ms', 'write_p99_ms', 'writers_asleep', 'mean_pause_ms',
                       'device_writes_per_s', 'device_busy_percent', 'order0_bytes',
                       'order6_bytes'):
            assert column in columns, column
        for p in plots:
            holds_the_series(p, all_series)
        pairs = {}
        for name, low, high in page.ask('window.sluice.plots.map(p => [p.plot, '
                                        '...p.graph.yAxisRange(0)])'):
            pairs.setdefault(name, set()).add((low, high))
        equal({name: len(ranges) for name, ranges in pairs.items()}, {n: 1 for n in PLOTS})


def test_in_a_browser_cases_lie_over_each_other():
    all_series = series(report())
    with opened() as page:
        page.ask('document.querySelectorAll(".segment button")[1].click()')
        clean(page)
        plots = drawn(page)
        equal([p['plot'] for p in plots],
              PLOTS[:-2] + ['requests', 'orders', 'orders'])
        for p in plots:
            holds_the_series(p, all_series)
        both = [p for p in plots if p['plot'] == 'throughput'][0]
        equal([line['case'] for line in both['lines']], [0, 1])


TWO_DEVICES = """[experiment]
name = two
[machine]
cpus = 2
memory = 64M
[device]
model = rate
name = %s
mbps = 5
[device fast]
model = rate
mbps = 50
mount = /fast
[phase p]
measure = yes
line = [slow]
line = rw=write
line = bs=64k
line = size=4m
line = filename=a
line = fsync=16
line = [fast]
line = rw=write
line = bs=64k
line = size=16m
line = filename=/fast/b
line = fsync=16
[case a]
[case b]
device.fast.mbps = 20
"""


def data(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page,
                                re.DOTALL).group(1))['cases']


def test_in_a_browser_each_device_has_its_plot_and_fsyncs_have_theirs():
    with open('two.ini', 'w') as f:
        f.write(TWO_DEVICES % '"><b>')  # what people write stays text
    page = report(path='two.ini')
    assert '"><b>' not in page
    cases = data(page)
    for case in cases:
        equal(len(case['devices']), 2)
        for key in ('device_writes_per_s', 'device_write_bytes_per_s'):
            for at, value in enumerate(case['series'][key]):
                parts = [d[key][at] for d in case['devices']]
                assert value is parts[0] is parts[1] is None or abs(value - sum(parts)) < 1e-3
    with opened() as shown:
        clean(shown)
        plots = drawn(shown)
        equal([p['plot'] for p in plots if p['lines'][0]['case'] == 0],
              ['dirty', 'charge', 'throughput', 'bandwidth', 'latency', 'fsync', 'device-0',
               'device-1', 'sizes-0', 'sizes-1', 'requests-0', 'requests-1', 'orders'])
        titles = shown.ask('[...document.querySelectorAll("#compare figcaption b")].map(b => b.textContent)')
        assert '"><b>: Device' in titles and 'fast: Device' in titles, titles
        for p in plots:
            if p['lines'][0].get('device') is None:
                holds_the_series(p, [c['series'] for c in cases])
                continue
            holds_the_series(p, [{**c['series'], **c['devices'][p['lines'][0]['device']]} for c in cases])


TENANTS = """[experiment]
name = tenants
policy = sluice
[machine]
cpus = 2
memory = 64M
[device]
model = rate
mbps = 5
[tenant %s]
dirty_bytes = 1M
[tenant quiet]
[phase p]
measure = yes
line = [global]
line = rw=write
line = bs=64k
line = [noisy]
line = cgroup=%s
line = size=8m
line = filename=a
line = [quiet]
line = cgroup=quiet
line = size=4m
line = rate=2m
line = filename=b
line = [dropped]
line = uncached=1
line = size=4m
line = rate=2m
line = filename=c
[case a]
dontcache = kick
"""


def tenants_add_up(case, figures):
    times = case['series']['t_s']
    for columns, wanted in zip(case['tenants'], figures):
        for column, key, unit in (('dirtied_bytes_per_s', 'pages_charged', 4096),
                                  ('written_bytes_per_s', 'pages_written', 4096),
                                  ('writers_asleep', 'throttle_sleep_s', 1)):
            values = columns.get(column, [0] * len(times))
            total = sum(values[i] * (times[i] - times[i - 1]) for i in range(1, len(times)))
            assert abs(total - wanted[key] * unit) <= 1e-6 * total, (column, total, wanted)
        assert 0 < max(columns['dirty_bytes']) <= wanted['max_dirty_bytes']


def test_tenants_add_up_when_points_are_joined():
    noisy = os.path.join(program.ROOT, 'experiments', 'p5-noisy.ini')
    case, = data(report('-c', 'targeted', '--json', 'r.json', path=noisy))
    assert 500 <= len(case['series']['t_s']) <= 1001
    with open('r.json') as f:
        recorded = json.load(f)['cases'][0]
    tenants_add_up(case, recorded['tenants'])
    plain, = program.figures(program.SLUICE, noisy, '-c', 'targeted')['cases']
    equal(recorded['tenants'], plain['tenants'])  # recording them changes nothing


def test_in_a_browser_tenants_have_their_plots():
    with open('tenants.ini', 'w') as f:
        f.write(TENANTS % ('"><b>', '"><b>'))
    page = report('--json', 'r.json', path='tenants.ini')
    assert '"><b>' not in page
    case, = data(page)
    noisy, quiet = case['tenants']
    times = case['series']['t_s']
    with open('r.json') as f:
        figures = json.load(f)['cases'][0]['tenants']
    equal([t['tenant'] for t in figures], ['"><b>', 'quiet'])
    tenants_add_up(case, figures)
    equal(set(noisy['limit_bytes']), {1 << 20})
    equal(('writers_asleep' in noisy, 'writers_asleep' in quiet), (True, False))
    contains(Text(page).text, 'Tenants')
    with opened() as shown:
        clean(shown)
        plots = {p['plot']: p for p in drawn(shown)}
        keys = shown.ask('[...document.querySelectorAll("figure")].filter(f => f.textContent'
                         '.includes("Dirty memory of tenants"))[0].querySelector(".keys")'
                         '.textContent')
        equal(keys, '"><b>"><b> (limit)quietquiet (limit)')
        equal([line['column'] for line in plots['dontcache']['lines']], ['dontcache_bytes'])
        holds_the_series(plots['dontcache'], [case['series']])
        for name, lines in (('tenants', 4), ('tenants-written', 2), ('tenants-asleep', 1)):
            equal(len(plots[name]['lines']), lines)
            for line in plots[name]['lines']:
                one = {**plots[name], 'lines': [line], 'rows': [
                    [row[0], row[1 + plots[name]['lines'].index(line)]]
                    for row in plots[name]['rows']]}
                holds_the_series(one, [{'t_s': times, **case['tenants'][line['tenant']]}])


def test_sizes_of_fuse_requests_stand_in_the_page():
    with open('fuse.ini', 'w') as f:
        f.write('[experiment]\nname = f\n[machine]\ncpus = 2\nmemory = 64M\n'
                '[device]\nmodel = fuse\nmax_write_kb = 128\n[phase p]\nmeasure = yes\n'
                'line = [w]\nline = rw=write\nline = bs=1m\nline = size=8m\nline = filename=a\n'
                'line = fsync=4\n[case a]\n')
    page = report('--json', 'r.json', path='fuse.ini')
    case, = data(page)
    times = case['series']['t_s']
    with open('r.json') as f:
        predicted = json.load(f)['cases'][0]['predicted']
    sizes = [s for s in ('4k', '8k', '16k', '32k', '64k', '128k', '256k', '512k', '1m', 'larger')
             if predicted['device_writes_' + s]]
    equal(sizes[-1], '128k')
    equal([s for s in case['series'] if s.startswith('device_writes_') and s != 'device_writes_per_s'],
          ['device_writes_%s_per_s' % s for s in sizes])
    for size in sizes:
        values = case['series']['device_writes_%s_per_s' % size]
        total = sum(values[i] * (times[i] - times[i - 1]) for i in range(1, len(times)))
        assert abs(total - predicted['device_writes_' + size]) < 1e-3, (size, total)
    with opened() as shown:
        clean(shown)
        plot, = [p for p in drawn(shown) if p['plot'] == 'requests']
        equal([line['column'] for line in plot['lines']],
              ['device_writes_%s_per_s' % s for s in sizes])


def test_a_report_may_go_to_standard_output():
    done = sluice('lab', SMALL, '--report', '-', '--explain')
    equal((done.status, done.err, done.out), (0, '', report(name='same.html')))
    equal(os.listdir('.'), ['same.html'])
    refused(['lab', SMALL, '--report', '-', '--json', '-'],
            'sluice lab: --json - and --report -: standard output can be only one')


def test_a_full_disk_is_called_one():
    for option in ('--report', '--json'):
        done = sluice('lab', SMALL, option, '/dev/full')
        equal((done.status, done.err),
              (1, 'sluice lab: /dev/full: cannot be written: No space left on device\n'))


def test_in_a_browser_each_case_has_its_plots():
    all_series = series(report())
    with opened(fragment='#all') as page:
        page.ask('new Promise(done => setTimeout(done, 50))')
        clean(page)
        page.dark(True)
        clean(page)
        plots = drawn(page)
        equal(len(plots), 32)
        for p in plots:
            holds_the_series(p, all_series)


def test_in_a_browser_panels_zoom_and_point_together():
    report()
    windows = 'window.sluice.plots.map(p => p.graph.xAxisRange())'
    with opened() as page:
        left, top, width, height = page.ask(
            '(r => [r.x, r.y, r.width, r.height])(document.querySelector('
            '"#compare .canvas canvas").getBoundingClientRect())')
        whole = page.ask(windows)
        page.drag(left + width * .4, top + height * .4, left + width * .6, top + height * .4)
        zoomed = page.ask(windows)
        equal([w for w in zoomed if w != zoomed[0]], [])
        assert whole[0][0] < zoomed[0][0] < zoomed[0][1] < whole[0][1], (whole, zoomed)
        page.mouse('mouseMoved', left + width / 2, top + height / 2)
        shown = page.ask('[...document.querySelectorAll("#compare .key output")]'
                         '.map(o => o.textContent)')
        assert len(shown) > 20 and all(shown), shown
        page.double_click(left + width / 2, top + height / 2)
        equal(page.ask(windows), whole)
        clean(page)


def test_in_a_browser_hostile_text_does_nothing():
    report(path=hostile_experiment())
    with opened(fragment='#all') as page:
        clean(page)
        equal(page.ask('document.querySelector("h1").textContent'), HOSTILE)
        equal(page.ask('typeof window.pwned'), 'undefined')


program.main(globals())
