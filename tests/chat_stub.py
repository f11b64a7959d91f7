"""An endpoint for chat completions, as models are served, that answers what a test says."""

import json
import threading

from tests.faults import FaultProxy, Reply


def completion(content):
    """The answer of a model that says ``content``."""
    text = content if isinstance(content, str) else json.dumps(content)
    return 200, {}, json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


def said(verdict_of, *, confidence=0.9):
    """A model that gives each number the verdict of a function of the newer and the older text."""

    def reply(body):
        answers = []
        for question in json.loads(body["messages"][1]["content"])["questions"]:
            newer = question["newer"]["text"] if "newer" in question else None
            for item in question.get("older", [question]):
                told = {"reason": "as told", "verdict": verdict_of(newer, item["text"])}
                answers.append({"number": item["number"], "confidence": confidence} | told)
        return completion({"answers": answers})

    return reply


class ChatStub(FaultProxy):
    """Each request takes the next reply of ``replies``, then ``otherwise``: an answer, or a function of the request."""

    def __init__(self, *replies, otherwise=None):
        super().__init__("http://127.0.0.1:9/v1")
        self.replies, self.otherwise, self._left = list(replies), otherwise, threading.Event()

    def __exit__(self, *exc):
        self._left.set()
        super().__exit__(*exc)

    @property
    def bodies(self):
        return [request.body.decode() for request in self.requests]

    def silence(self, body):
        """No answer until the test is over."""
        self._left.wait(30)

    def _next_fault(self, request):
        reply = self.replies.pop(0) if self.replies else self.otherwise

        def fault(request, forward):
            answer = reply(json.loads(request.body)) if callable(reply) else reply
            return Reply(None) if answer is None else Reply(*answer)

        return fault
