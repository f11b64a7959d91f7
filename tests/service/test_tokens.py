"""Bearer tokens are ours, fresh and of one kind; secrets and passwords are known only by their hashes."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from argon2 import extract_parameters
from joserfc import jwt
from joserfc.jwk import OctKey

from memframe.errors import AuthError, ConfigError
from memframe.secret import Secret
from memframe.service.keys import MasterKey
from memframe.service.tokens import Bearer, BearerTokens, Passwords, is_secret_of, new_secret, secret_hash

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = bytes(range(32))
DEVELOPER = Bearer("d-1", 2)
CLAIMS = {
    "iss": "http://a", "aud": "http://a/api/v1", "sub": "d-1", "jti": "x", "epoch": 2,
    "iat": int(NOON.timestamp()), "exp": int(NOON.timestamp()) + 60,
}  # fmt: skip
HEADER = {"alg": "HS256", "typ": "at+jwt"}


def tokens(*, now=NOON, key=KEY):
    return BearerTokens(key, issuer="http://a", audience="http://a/api/v1", now=lambda: now)


def forged(header=(), key=KEY, algorithms=None, **claims):
    kept = {name: value for name, value in (CLAIMS | claims).items() if value is not None}
    return Secret(jwt.encode(HEADER | dict(header), kept, OctKey.import_key(key), algorithms=algorithms))


def test_a_token_tells_whose_it_is():
    token, expires_at = tokens().issue(DEVELOPER, 600)
    assert expires_at == NOON + timedelta(seconds=600)
    assert tokens().check(token) == DEVELOPER
    assert tokens().check(forged(epoch=None)) == Bearer("d-1", 0)
    assert tokens().check(forged(iat=int(NOON.timestamp()) + 30)) == DEVELOPER, (
        "made where the clock is ahead"
    )


@pytest.mark.asvs("9.1.1", "9.1.2", "9.1.3", "9.2.1", "9.2.2", "9.2.3", "10.3.1")
@pytest.mark.rfc(
    "6750 5.2a",
    "8725 3.1a",
    "8725 3.2a",
    "8725 3.3a",
    "8725 3.8a",
    "8725 3.9a",
    "8725 3.10a",
    "8725 3.11a",
    "8725 3.12a",
)
@pytest.mark.parametrize(
    "token",
    [
        forged(key=bytes(32)),
        forged(header={"typ": "JWT"}),
        forged(header={"jwk": {"kty": "oct", "k": "A" * 43}, "jku": "https://evil.example"}, key=bytes(32)),
        forged(header={"alg": "HS512"}, key=KEY * 2, algorithms=["HS512"]),
        forged(iss="http://b"),
        forged(aud="http://b"),
        forged(exp=int(NOON.timestamp())),
        forged(iat=int(NOON.timestamp()) + 31),
        forged(nbf=int(NOON.timestamp()) + 60),
        *[forged(**{name: None}) for name in CLAIMS if name != "epoch"],
        forged(epoch="x"),
        Secret("eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0.eyJzdWIiOiJkLTEifQ."),
        Secret("é.é.é"),
        Secret("a" * 100_000),
    ],
)
def test_a_token_that_is_not_quite_ours_is_refused(token):
    with pytest.raises(AuthError, match="not valid or has expired") as refusal:
        tokens().check(token)
    assert refusal.value.status == 401
    assert refusal.value.__cause__ is None


def test_a_token_that_is_known_already_ends_in_time_and_opens_to_no_other():
    time = NOON
    ours = BearerTokens(KEY, issuer="http://a", audience="http://a/api/v1", now=lambda: time)
    token = forged()
    assert ours.check(token) == ours.check(token) == DEVELOPER
    with pytest.raises(AuthError):
        ours.check(Secret(token.reveal()[:-2]))
    time += timedelta(seconds=59)
    assert ours.check(token) == DEVELOPER
    time += timedelta(seconds=1)
    with pytest.raises(AuthError):
        ours.check(token)


@pytest.mark.asvs("7.2.3", "11.2.3", "11.4.3", "11.5.1")
@pytest.mark.rfc("6749 10.10a")
def test_machine_made_secrets_have_their_bits_and_their_prefix_and_are_recognised_by_their_hash():
    made = [new_secret("mfk_") for _ in range(100)]
    assert len({secret.reveal() for secret in made}) == 100
    assert all(re.fullmatch("mfk_[A-Za-z0-9_-]{43}", secret.reveal()) for secret in made)
    secret, stored = made[0], secret_hash(made[0])
    assert is_secret_of(secret, stored)
    assert len(bytes.fromhex(stored)) * 8 == 256
    assert not is_secret_of(Secret(secret.reveal() + "x"), stored)
    assert not is_secret_of(Secret("\ud800"), stored)


@pytest.mark.asvs("11.4.2")
def test_passwords_are_hashed_at_the_cost_that_is_recommended():
    stored = Passwords().hash(Secret("correct horse"))
    costs = extract_parameters(stored)
    assert (costs.type.name, costs.salt_len >= 16, costs.hash_len >= 16) == ("ID", True, True)
    assert costs.memory_cost >= 19 * 1024  # of OWASP's pairs the one with the least memory at two rounds
    assert costs.time_cost >= 2
    assert not Passwords().matches(Secret("\ud800"), stored)


@pytest.mark.asvs("11.3.3")
def test_a_wrapped_key_opens_only_in_its_place():
    master = MasterKey.generate()
    wrapped = master.wrap(KEY, user_id="u-1", version=1)
    assert master.unwrap(wrapped, user_id="u-1", version=1) == KEY
    elsewhere = [(master, "u-2", 1), (master, "u-1", 2), (MasterKey.generate(), "u-1", 1)]
    for opener, user_id, version in elsewhere:
        with pytest.raises(ConfigError, match="does not open with this master key"):
            opener.unwrap(wrapped, user_id=user_id, version=version)


def test_what_is_derived_is_stable_and_one_a_purpose():
    master, again = (MasterKey(Secret("0f" * 32)) for _ in range(2))
    assert master.derive("a") == again.derive("a")
    assert len({master.derive("a"), master.derive("b"), master.derive("a", "b"), master.derive("ab")}) == 4
    pairs = [{"user_id": user, "developer_id": developer} for user in "ab" for developer in "cd"]
    assert len({master.memory_key(**pair).reveal() for pair in pairs}) == 4
    assert "0f0f" not in repr(master)


@pytest.mark.asvs("11.2.3")
@pytest.mark.rfc("8725 3.5a")
@pytest.mark.parametrize("text", ["", "0f", "0f" * 33, "zz" * 32, "0F" * 32])
def test_a_master_key_of_another_form_is_refused_without_being_shown(text):
    with pytest.raises(ConfigError, match="64 hexadecimal") as refusal:
        MasterKey(Secret(text))
    assert not text or text not in str(refusal.value)
