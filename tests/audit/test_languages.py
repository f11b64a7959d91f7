# ruff: noqa: RUF001 - sentences of other scripts
"""Languages: which ones a store is in, and in which of them rules about wording find something."""

import pandas as pd
import pytest

import memframe as mf
from memframe.audit.languages import LANGUAGES, describe_languages, language_of, languages_of
from memframe.audit.stale import find_stale
from memframe.audit.text import with_all_columns
from memframe.audit.versions import find_versions

SENTENCES = {
    "en": "Ada lives in the old mill and walks to work.",
    "de": "Ada wohnt mit dem Hund in der alten Mühle und geht zu Fuß.",
    "fr": "Ada habite dans le vieux moulin avec son chien et une chatte.",
    "es": "Ada vive en el viejo molino con los perros y una gata.",
    "pt": "Ela mora com os cães e uma gata, mas não gosta do moinho.",
    "it": "Lei non abita nel vecchio mulino, ma vive con gli altri della valle.",
    "nl": "Zij woont met een hond in de oude molen en het dorp.",
    "pl": "Ada nie mieszka w mieście, ale jest przez wieś znana.",
    "ru": "Ада живёт в старой мельнице.",
    "uk": "Ада живе у старому млині біля річки.",
    "zh": "艾达住在北京。",
    "ja": "エイダは古い水車小屋に住んでいます。",
    "ko": "에이다는 서울에 산다.",
    "ar": "تعيش آدا في الطاحونة القديمة.",
    "he": "עדה גרה בטחנה הישנה.",
    "el": "Η Άντα μένει στον παλιό μύλο.",
    "hi": "एडा पुरानी चक्की में रहती है।",
    "th": "เอดาอาศัยอยู่ในโรงสีเก่า",
}


def test_every_language_is_tried():
    assert SENTENCES.keys() == LANGUAGES.keys()


@pytest.mark.parametrize("code", SENTENCES)
def test_a_language_is_told(code):
    assert language_of(SENTENCES[code]) == code


@pytest.mark.parametrize(
    "text", ["Leeds", "Ada: 12 km", "", "GET /v1/users 200", "Москва, the city of the tsars, is in it"]
)
def test_names_and_numbers_are_no_language(text):
    assert language_of(text) in {None, "en"}


def frame_of(texts):
    days = pd.to_datetime([f"2026-03-{day + 2:02}" for day in range(len(texts))], utc=True)
    frame = pd.DataFrame({"id": [f"m{n}" for n in range(len(texts))], "content": texts, "created_at": days})
    return with_all_columns(frame.assign(updated_at=days))


def test_an_audit_says_which_languages_it_does_not_read():
    texts = [SENTENCES["en"]] * 3 + [SENTENCES["ko"]]
    said = " ".join(mf.audit_memories(frame_of(texts)).not_checked)
    assert "English (75%), Korean (25%)" in said
    assert "looked for in English, not in Korean" in said
    assert "The texts are in" not in " ".join(mf.audit_memories(frame_of(texts[:3])).not_checked)
    only_tags = mf.audit_memories(frame_of(texts), checks=["tags"]).not_checked
    assert "The texts are in" not in " ".join(only_tags)


def test_of_languages_without_a_name_there_is_a_sentence():
    turkish = "Ayşe her sabah erkenden kalkıp uzun uzun yürüyor sonra kahvaltısını yapıp işine gidiyor akşam dönüyor"
    assert "cannot be told (100%)" in "".join(describe_languages([turkish], {"Plans": "stale"}))


NO_LONGER = {
    "en": (
        "The shop database runs on Postgres.",
        "No longer uses Postgres for the shop database, MySQL now.",
    ),
    "de": (
        "Ich arbeite bei Siemens in Ulm.",
        "Ich arbeite nicht mehr bei Siemens in Ulm, sondern bei Bosch.",
    ),
    "fr": ("Ada habite à Lyon.", "Ada n'habite plus à Lyon."),
    "es": ("Ada vive en Madrid.", "Ada ya no vive en Madrid."),
    "pt": ("Ada mora em Lisboa.", "Ada já não mora em Lisboa."),
    "it": ("Ada vive a Torino.", "Ada non vive più a Torino."),
    "ru": ("Ада живёт в Москве.", "Ада больше не живёт в Москве."),
    "zh": ("艾达住在北京。", "艾达不再住在北京。"),
    "ja": ("エイダは京都に住んでいる。", "エイダはもう京都に住んでいない。"),
}


@pytest.mark.parametrize("code", NO_LONGER)
def test_what_no_longer_holds_is_an_older_version(code):
    found = find_versions(frame_of(NO_LONGER[code])).set_index("id")
    assert found.loc["m0", "kind"] == "replaced"
    assert code in languages_of("superseded")


EXPIRED = {
    "en": "The dentist sees Ada next week",
    "de": "In der nächsten Woche kommt der Klempner",
    "fr": "Elle part le mois prochain",
    "es": "Viaja el mes que viene",
    "pt": "Consulta com o dentista amanhã",
    "it": "La prossima settimana parte per Roma",
    "ru": "Завтра приём у врача",
    "zh": "下周搬家",
    "ja": "来週、見積書を送る",
}


@pytest.mark.parametrize("code", EXPIRED)
def test_a_time_to_come_passes_in_each_language(code):
    found = find_stale(frame_of([EXPIRED[code]]), now=pd.Timestamp("2026-09-01"))
    assert found["kind"].tolist() == ["expired"]
    assert code in languages_of("stale")


@pytest.mark.parametrize(
    "text",
    [
        "March 12, 2025: the base class is done.",
        "## Update 1:16 AM CST (March 3)\nThe build is green",
        "Thank you for clarifying that I am Friday.",
        "Le mercredi, Ada nage avec Tom",
        "В пятницу ходила к врачу",
        "明日の予約を取った",
        "Credenciais salvas (02/03/2026)",
    ],
)
def test_the_day_of_writing_and_names_of_days_are_no_deadlines(text):
    assert find_stale(frame_of([text]), now=pd.Timestamp("2026-09-01")).empty


def test_a_deadline_in_brackets_passes():
    text = "Grant application, deadline in brackets (due March 3)"
    assert len(find_stale(frame_of([text]), now=pd.Timestamp("2026-09-01"))) == 1


def test_two_plans_that_both_ended_do_not_replace_each_other():
    texts = [
        "Mia cancelled the weekend plan to visit the zoo because of bad weather.",
        "Mia cancelled the weekend plan for swimming because of bad weather, a typhoon.",
    ]
    assert "replaced" not in set(find_versions(frame_of(texts))["kind"])
