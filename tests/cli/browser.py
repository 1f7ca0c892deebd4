# SPDX-License-Identifier: MIT
"""A headless Chromium, driven over a pipe in its own protocol: one JSON message each way, each
ended by a zero byte, on file descriptors 3 and 4 (Chrome DevTools Protocol)."""
import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile

QUIET = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
         '--disable-background-networking', '--disable-dev-shm-usage', '--hide-scrollbars',
         '--disable-extensions', '--disable-component-update', '--disable-sync',
         '--remote-debugging-pipe']


def find():
    return shutil.which('chromium')


class Page:
    """One page; `errors` collects what the console complained of, `requests` what was asked
    for beside the page itself."""

    def __init__(self, width=1280, height=900):
        self.errors, self.requests, self.last = [], [], 0
        self.home = tempfile.mkdtemp(prefix='sluice-browser-')
        to_read, self.to = os.pipe()
        self.back, back_write = os.pipe()
        # out of the way of 3 and 4, which they become in the child
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_read, back_write)]
        for fd in (to_read, back_write):
            os.close(fd)
        self.process = subprocess.Popen(
            [find(), *QUIET, '--user-data-dir=' + self.home,
             '--window-size=%d,%d' % (width, height), 'about:blank'],
            preexec_fn=lambda: (os.dup2(ends[0], 3), os.dup2(ends[1], 4)), pass_fds=(3, 4),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in ends:
            os.close(fd)
        self.buffer, self.session = b'', None
        targets = self.call('Target.getTargets')['targetInfos']
        target = [t for t in targets if t['type'] == 'page'][0]
        self.session = self.call('Target.attachToTarget', targetId=target['targetId'],
                                 flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(domain + '.enable')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.home, ignore_errors=True)

    def receive(self):
        while b'\0' not in self.buffer:
            more = os.read(self.back, 1 << 20)
            if not more:
                raise AssertionError('the browser is gone')
            self.buffer += more
        message, self.buffer = self.buffer.split(b'\0', 1)
        message = json.loads(message)
        self.note(message.get('method', ''), message.get('params', {}))
        return message

    def note(self, event, params):
        if event == 'Runtime.exceptionThrown':
            self.errors.append(params['exceptionDetails'].get('exception', {}).get(
                'description', params['exceptionDetails']['text']))
        elif event == 'Runtime.consoleAPICalled' and params['type'] in ('error', 'warning'):
            self.errors.append(str([a.get('value') for a in params['args']]))
        elif event == 'Log.entryAdded' and params['entry']['level'] in ('error', 'warning'):
            self.errors.append(params['entry']['text'])
        elif event == 'Network.requestWillBeSent':
            self.requests.append(params['request']['url'])

    def call(self, method, **params):
        self.last += 1
        message = {'id': self.last, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.to, json.dumps(message).encode() + b'\0')
        while True:
            answer = self.receive()
            if answer.get('id') == self.last:
                if 'error' in answer:
                    raise AssertionError('%s: %s' % (method, answer['error']['message']))
                return answer['result']

    def open(self, path, fragment=''):
        self.call('Page.navigate', url='file://' + path + fragment)
        while self.receive().get('method') != 'Page.loadEventFired':
            pass

    def ask(self, expression):
        """The value of a JavaScript expression."""
        answer = self.call('Runtime.evaluate', expression=expression, returnByValue=True)
        if 'exceptionDetails' in answer:
            raise AssertionError('%s: %s' % (expression, answer['exceptionDetails']))
        return answer['result'].get('value')

    def mouse(self, kind, x, y, **more):
        self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, **more)

    def drag(self, x, y, to_x, to_y):
        self.mouse('mousePressed', x, y, button='left', clickCount=1)
        for step in range(1, 6):
            self.mouse('mouseMoved', x + (to_x - x) * step / 5, y + (to_y - y) * step / 5,
                       button='left', buttons=1)
        self.mouse('mouseReleased', to_x, to_y, button='left', clickCount=1)

    def double_click(self, x, y):
        for count in (1, 2):
            self.mouse('mousePressed', x, y, button='left', clickCount=count)
            self.mouse('mouseReleased', x, y, button='left', clickCount=count)

    def dark(self, on):
        self.call('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-color-scheme', 'value': 'dark' if on else 'light'}])

    def picture(self, path):
        with open(path, 'wb') as f:
            f.write(base64.b64decode(self.call('Page.captureScreenshot', format='png',
                                               captureBeyondViewport=True)['data']))
