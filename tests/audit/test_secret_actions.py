"""Secrets: what is proposed for each, by what says that it is one, and in which of its places it is found."""

import pandas as pd
import pytest

from memframe import audit_memories
from memframe.audit import find_sealed, find_secrets
from memframe.audit.secrets import _ACTIONS, SECRET_LANGUAGES
from memframe.audit.secrets.prose import ENOUGH, describe_evidence
from tests.audit.corpora import marked
from tests.audit.figures import frame_of

REDACTED = """
VM password: ⟦Xk%9wQe!mvSG42⟧
her password is ⟦hunter2x⟧
Door code: ⟦2580#⟧
The padlock opens with the PIN ⟦4071⟧.
AUTH_JWT_SECRET=⟦83920174650182⟧
sshpass -p '⟦@Q2%Y8Cbf%)mvSGQ41⟧' ssh u@203.0.113.7
PASSWORD=⟦Q2%Y8C)mvS9⟧
the password is ⟦@Q2%Y8C)mvS9⟧
read API: ⟦SKWQ0ABCTEWZQJ5H⟧
postgres://app:⟦hunter2x⟧@db/prod
Client Secret: ⟦GAtSSvW1UzLsO4PED0q5UWdR5YVLHXsn⟧，本地还没有绑定
API Key: ⟦tp-c7vjjat3tu3wtwt229dg4ojkl85ydc2f5azaei9yiaq1nrh3⟧（2026-05-28 更新）
| **Client Secret** | ⟦V0qovsgjxvUlXjVPmPfQYKRRQ9MoJnhJyfpEqiqZFM0⟧ |
pass\u200bword: ⟦hunter2boat⟧
password: ⟦hun\u200bter2boat⟧
the demo station has the password ⟦Regentonne#1986-Nele⟧
"""  # noqa: RUF001 - punctuation of Chinese
REVIEWED = """
the wifi password is ⟦sunflower⟧
Steam: marta / ⟦r1v3r_0N⟧
账号: 16755989216 / ⟦qwe123456⟧
Activation Codes: ⟦TRIAL-7DAY-FREE⟧
The default password is ⟦Heron2024⟧
router login, by default: admin / ⟦Heron!2024⟧
Security question: first pet. The answer is ⟦Biscuit⟧
"""
NOTHING = """
US Apple ID(jane.doe1@outlook.com)+airport+gift card, wants overseas tools
GitHub account login is octocat77; global git email set to o@example.org
9-digit ID + 6-digit dynamic code, expires after 10 minutes
channels add --channel bot --token "AppID:AppSecret"
minimax-portal/MiniMax-M2.5 → yunyi-claude/claude-sonnet-4-5, login: daily
skillflow_activation | pass (14/14验证通过)
the remote is git@git.example.org:bell77ada-notes/site.git
pos auth api: `3e22d077-cdfd-47ed-88af-be9741d423a2`
shop-db: `postgres:16-alpine` (port 5434)
[sudo] password for ada: sudo: a password is required
пароль: забыт
비밀번호: 분실
密码：请联系管理员
"""
TOLD = {
    "Arabic": "كلمة المرور: {}",
    "Chinese": "家里WiFi密码是{}。",
    "Dutch": "Het wachtwoord is {}",
    "English": "The wifi password is {}",
    "French": "le mot de passe est {}",
    "German": "Das Passwort lautet {}",
    "Hebrew": "הסיסמה היא {}",
    "Hindi": "पासवर्ड: {}",
    "Italian": "la password è {}",
    "Japanese": "パスワードは {} です",
    "Korean": "비밀번호는 {} 입니다",
    "Persian": "رمز عبور: {}",
    "Polish": "hasło do wifi: {}",
    "Portuguese": "a senha do wifi é {}",
    "Russian": "Пароль от почты: {}",
    "Spanish": "la contraseña es {}",
    "Thai": "รหัสผ่านคือ {}",
    "Turkish": "Wi-Fi şifresi: {}",
    "Ukrainian": "пароль від пошти: {}",
}
PINS = """
ПИН-код: ⟦4071⟧
код домофона: ⟦4071⟧
暗証番号は⟦4071⟧
门禁密码：⟦4071⟧
קוד הכניסה: ⟦4071⟧
الرقم السري: ⟦٤٠٧١⟧
kapı kodu: ⟦4071⟧
kod do bramy: ⟦4071⟧
"""  # noqa: RUF001 - Turkish has an i without a dot
DRAWN = "Xk%9wQe!mvSG42"


def lines(text):
    return [line.replace("\\u200b", "\u200b") for line in text.strip().splitlines()]


def spans(text):
    found = find_secrets(frame_of([text]))
    return [
        (start, end, action)
        for start, end, action in zip(found["start"], found["end"], found["action"], strict=True)
    ]


def store(*contents, **columns):
    return pd.DataFrame({"id": [f"m{n}" for n in range(len(contents))], "content": contents, **columns})


def places(memories):
    found = find_secrets(memories)
    return sorted(zip(found["id"], found["field"], found["action"], strict=True))


@pytest.mark.parametrize(
    ("line", "action"),
    [(line, "redact") for line in lines(REDACTED)] + [(line, "review") for line in lines(REVIEWED)],
)
def test_what_is_shaped_or_labelled_is_redacted_and_all_else_is_for_review(line, action):
    text, ((_, start, end),) = marked(line)
    assert spans(text) == [(start, end, action)]


@pytest.mark.parametrize("text", lines(NOTHING))
def test_what_only_stands_where_a_secret_may_is_none(text):
    assert spans(text) == []


@pytest.mark.parametrize("language", SECRET_LANGUAGES)
def test_told_passwords_are_found_in_each_language_that_is_named(language):
    text = TOLD[language].format("hunter2boat")
    start = text.index("hunter2boat")
    assert spans(text) == [(start, start + 11, "redact")]


@pytest.mark.parametrize("line", lines(PINS))
def test_pins_and_codes_of_doors_are_found_in_other_scripts(line):
    text, ((_, start, end),) = marked(line)
    assert spans(text) == [(start, end, "redact")]


def test_the_languages_are_said_to_be_all():
    (said,) = (line for line in audit_memories(store("tea")).not_checked if "Passwords" in line)
    assert all(language in said for language in SECRET_LANGUAGES)
    assert {*TOLD} == {*SECRET_LANGUAGES}


def test_very_long_keys_are_found_whole():
    key = "sk-api-" + "aB3dE5fG7hJ9kL1m" * 7
    text = f"ai_policy.py: {key}"
    assert spans(text) == [(text.index(key), len(text), "redact")]
    text = f"api key: {'aB3dE5fG7hJ9kL1m' * 40}"
    assert spans(text) == [(9, len(text), "redact")]


@pytest.mark.parametrize("basis", _ACTIONS)
def test_each_basis_of_a_secret_is_one_that_some_text_gives(basis):
    example = {
        "shape": "ghp_" + "4Jt0wZkQ" * 4 + "9aB2",
        "address": "postgres://app:hunter2x@db/prod",
        "label": "password: hunter2x",
        "repeat": f"uses {DRAWN}",
        "sentence": "the wifi password is sunflower",
        "published": "the default password is Heron2024",
    }[basis]
    actions = {action for row, _, action in places(store(f"VM password: {DRAWN}", example)) if row == "m1"}
    assert actions == {_ACTIONS[basis]}


# Other places of a secret


def test_a_found_secret_is_found_in_all_texts_sources_and_tags():
    memories = store(
        f"VM password: {DRAWN}",
        f"The script uses {DRAWN} for the VM",
        f"glued: x{DRAWN}y",
        "nothing",
        title=[None, f"VM {DRAWN}", None, None],
        summary=[None, None, f"({DRAWN})", None],
        source=["chat", "chat", "chat", DRAWN],
        tags=[(), ("vm", f"pw {DRAWN}"), (), ()],
    )
    fields = [("m0", "content"), ("m1", "content"), ("m1", "tags"), ("m1", "title"), ("m2", "content"),
              ("m2", "summary"), ("m3", "source")]  # fmt: skip
    assert places(memories) == [(*place, "redact") for place in fields]


def test_a_secret_within_a_longer_word_is_for_review_unless_it_can_be_nothing_else():
    memories = store("password: hunter2boat", "the myhunter2boats are new", "the hunter2boat is new")
    assert places(memories) == [
        ("m0", "content", "redact"), ("m1", "content", "review"), ("m2", "content", "redact")
    ]  # fmt: skip


def test_words_short_numbers_and_dates_are_not_looked_for_elsewhere():
    memories = store(
        "the wifi password is sunflower",
        "a sunflower",
        "PIN: 4071",
        "4071 steps",
        "password: 20261123",
        "20261123",
    )
    assert {row for row, _, _ in places(memories)} == {"m0", "m2", "m4"}


def test_what_was_unsure_once_is_unsure_everywhere():
    memories = store("Steam: marta / r1v3r_0N", "she typed r1v3r_0N")
    assert places(memories) == [("m0", "content", "review"), ("m1", "content", "review")]


def test_what_one_sentence_alone_makes_a_secret_is_none_within_an_address_or_a_name():
    memories = store(
        "Steam: marta / r1v3r_0N",
        "mail to r1v3r_0N@example.org",
        "github.com/r1v3r_0N",
        "the r1v3r_0N-tools",
        "r1v3r_0N.",
    )
    assert {row for row, _, _ in places(memories)} == {"m0", "m4"}


def test_a_place_counts_the_characters_that_nobody_sees():
    text = "\u200bthe pass\u200bword is hun\u200bter2\u2060boat, \U000e0041yes"
    ((start, end, _),) = spans(text)
    assert text[start:end] == "hun\u200bter2\u2060boat"


# What is shown


def test_a_key_alone_is_not_sealed_content_as_well():
    key = "sk-proj-" + "4Jt0wZkQ9aB2" * 5
    assert find_sealed(store(key)).empty
    assert len(audit_memories(store(key), checks=["secret", "sealed"]).findings) == 1


def test_what_looks_random_is_masked_in_evidence_although_no_check_knows_it():
    word = "~lmlyD2zM*9"

    def quotes(memories):
        return pd.DataFrame({"id": memories["id"], "evidence": memories["content"]})

    audit = audit_memories(
        store(f"Assistant was asked to autofill {word} on the tax website"), checks=[quotes]
    )
    (evidence,) = audit.findings["evidence"]
    assert evidence == "Assistant was asked to autofill (11 characters) on the tax website"


def test_evidence_shows_what_stands_around_a_secret():
    def quotes(memories):
        return pd.DataFrame({"id": memories["id"], "evidence": memories["content"]})

    audit = audit_memories(store("Her password is hunter2boat, says Ada; hunter2 for short"), checks=[quotes])
    (evidence,) = audit.findings["evidence"]
    assert evidence == "Her password is (11 characters), says Ada; (7 characters) for short"


def test_a_score_is_the_sum_of_its_evidence():
    (line,) = describe_evidence("The PDF is protected, open it with Rechnung!0815")
    value, _, listed = line.partition(": ")
    weights = [float(part.split()[-1]) for part in listed.split(", ")]
    assert value == f"Rechnung!0815 ({sum(weights):g}, found)"
    assert sum(weights) >= ENOUGH
