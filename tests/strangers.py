"""A service of somebody else: it reads the specification in its own way, and answers what a test says.

Every endpoint has an answer that is right; a test replaces one.
"""

import copy

from memframe import wire
from memframe.client import Client
from memframe.client.transport import Transport, read_retry
from memframe.oauth import OAuthFlow
from memframe.secret import Secret
from tests.faults import FaultProxy, answered

USER_ID = "5f0c9b1e-93f3-4b6c-8c0a-0a4c6b8d2e11"

SECRETS = {
    "api key": "mf_canary+api/key=1",
    "token": "canary.token-of/this+run=",
    "memory key": "mk_canary/memory+key=2",
    "encryption key": "8f3c1d5e7a9b0c2d4e6f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5",
    "client secret": "cs_canary+client/secret=3",
    "code": "code_canary/of+consent=4",
    "access token": "canary+access/token=5",
    "refresh token": "canary+refresh/token=6",
}

TOKEN = {"token": SECRETS["token"], "expires_at": "2999-01-01T00:00:00Z", "token_type": "Bearer"}
REQUEST = {
    "id": "r1",
    "status": "approved",
    "reason": "to remember",
    "memoryKey": SECRETS["memory key"],
    "user_id": USER_ID,
    "aiConnectorId": "a1",
    "createdAt": "2026-01-01T00:00:00Z",
    "updatedAt": "2026-01-02T00:00:00Z",
}
CREDENTIALS = {
    "user_id": USER_ID,
    "memory_key": SECRETS["memory key"],
    "encryption_key": SECRETS["encryption key"],
    "key_version": 1,
}
MEMORY = {
    "id": "m1",
    "user_id": USER_ID,
    "content": "Likes tea, hates coffee.",
    "title": "Tea",
    "summary": None,
    "tags": ["food"],
    "tag_ids": ["t1"],
    "importance": 0.5,
    "confidence": 1,
    "source": "chat",
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z",
}
PAGE = {"memoryBlobs": [MEMORY], "next_cursor": None}
TAG = {"id": "t1", "name": "food", "color": "#00ff00", "description": "", "is_enabled": True}
OAUTH_TOKENS = {
    "access_token": SECRETS["access token"],
    "token_type": "bearer",
    "expires_in": 3600,
    "refresh_token": SECRETS["refresh token"],
    "memory_key": SECRETS["memory key"],
}
EXCHANGE_CODE = wire.Endpoint("POST", wire.OAUTH_TOKEN)

ANSWERS = {
    wire.ISSUE_TOKEN: (200, TOKEN),
    wire.CREATE_REQUEST: (201, {**REQUEST, "status": "pending"}),
    wire.LIST_REQUESTS: (200, {"items": [REQUEST], "total": 1}),
    wire.GET_REQUEST: (200, REQUEST),
    wire.GET_CREDENTIALS: (200, CREDENTIALS),
    wire.LIST_MEMORIES: (200, PAGE),
    wire.GET_MEMORY: (200, MEMORY),
    wire.CREATE_MEMORY: (201, MEMORY),
    wire.UPDATE_MEMORY: (200, MEMORY),
    wire.DELETE_MEMORY: (200, {"success": True}),
    wire.LIST_TAGS: (200, {"items": [TAG]}),
    wire.TAG: (200, TAG),
    EXCHANGE_CODE: (200, OAUTH_TOKENS),
}


class Stranger(FaultProxy):
    """Answers by itself: nothing is forwarded to anybody."""

    def __init__(self):
        super().__init__("http://127.0.0.1:9/somewhere/else/api/v1")
        for endpoint, (status, body) in ANSWERS.items():
            self.always(endpoint, answered(status, body))

    def answer(self, endpoint, **fields):
        """Replace fields of the endpoint's right answer."""
        status, body = ANSWERS[endpoint]
        self.always(endpoint, answered(status, {**copy.deepcopy(body), **fields}))

    def answer_without(self, endpoint, *names):
        """Leave fields out of the endpoint's right answer."""
        status, body = ANSWERS[endpoint]
        kept = {name: value for name, value in body.items() if name not in names}
        self.always(endpoint, answered(status, kept))

    def client(self, **options):
        return client_of(self.base_url, **options)

    def flow(self, **options):
        settings = {"auth_url": self.base_url, "redirect_uri": "http://127.0.0.1/callback"} | options
        return OAuthFlow("app", SECRETS["client secret"], transport=at_once(), **settings)


def at_once():
    """A transport that repeats without waiting."""
    return Transport(retry=read_retry().new(backoff_factor=0, backoff_jitter=0))


def client_of(base_url, **options):
    return Client(base_url, Secret(SECRETS["api key"]), transport=at_once(), **options)
