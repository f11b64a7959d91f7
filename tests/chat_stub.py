"""An endpoint for chat completions, as models are served, that answers what a test says."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def completion(content):
    """The answer of a model that says ``content``."""
    text = content if isinstance(content, str) else json.dumps(content)
    return 200, {}, json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


def said(verdict_of, *, confidence=0.9):
    """A model that gives each number the verdict of a function of the newer and the older text."""

    def reply(body):
        answers = []
        for question in json.loads(body["messages"][1]["content"])["questions"]:
            items = question.get("older", [question])
            newer = question["newer"]["text"] if "newer" in question else None
            answers += [
                {
                    "number": item["number"],
                    "reason": "as told",
                    "verdict": verdict_of(newer, item["text"]),
                    "confidence": confidence,
                }
                for item in items
            ]
        return completion({"answers": answers})

    return reply


class ChatStub:
    """Listens on a free port; each request takes the next reply of ``replies``, then ``otherwise``."""

    def __init__(self, *replies, otherwise=None):
        self.replies, self.otherwise = list(replies), otherwise
        self.requests, self.bodies, self.left = [], [], threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self.left.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def base_url(self):
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def silence(self, body):
        """No answer until the test is over."""
        self.left.wait(30)

    def _handler(self):
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                with stub._lock:
                    stub.requests.append((self.path, dict(self.headers)))
                    stub.bodies.append(raw.decode())
                    reply = stub.replies.pop(0) if stub.replies else stub.otherwise
                answer = reply(json.loads(raw)) if callable(reply) else reply
                if answer is None:
                    return
                status, headers, body = answer
                self.send_response(status)
                for name, text in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST  # noqa: N815 - the names that http.server calls

            def log_message(self, *args):
                """Say nothing."""

        return Handler
