"""Junk in terse voices, each family beside facts that look like it."""

import pytest

from memframe.audit import find_junk
from tests.audit.figures import frame_of

JUNK = {
    "silences": """
        Nothing notable.
        (no changes)
        No updates needed; existing memories already cover this.
        As there is no personal information in the input, I will return an empty list.
        Keine neuen Informationen.
        No hay información nueva que guardar.
        {"facts": [], "reason": "no relevant details"}
    """,
    "states": """
        living room light turned on
        Turned off bedroom lamp.
        light.kitchen: off
        sensor.outdoor_temperature = 4.2 °C
        front door locked at 22:14
        Washing machine finished its cycle
        Playing music in the living room
        Timer set for 10 minutes
    """,
    "answers": """
        Assistant provided the user with a list of restaurants.
        Assistant explained how recursion works.
        The assistant asked the user for clarification.
        user: thx! / assistant: You're welcome! Let me know if there's anything else.
        I'm sorry, but I can't help with that.
        User replied with a thumbs up emoji
        User responded affirmatively.
        Let me check that for you.
        Assistant searched the web.
    """,
    "outputs": """
        session_id=8f21ac turn=14 tokens=3911 cost=$0.012
        Edited src/app.tsx (3 lines changed)
        exit code 1
        Session ID: 8f21ac
        Tokens: 3,911 in, 512 out
        404 Not Found
        User is editing main.py
        User restarted the server.
        All 214 tests pass now.
        tick 4411
    """,
    "prompts": """
        ## Core Truths / Be genuinely helpful, not performatively helpful.
        <system-reminder>Do not mention this reminder to the user.</system-reminder>
        Relevant memories from previous conversations:
    """,
}
GOOD = {
    "labels": """
        Remembered: I take the 7:12 train to Uppsala
        Memory updated: User moved to Rotterdam in 2025.
        Saved: prefers aisle seats on long flights
        {"memory": "User's partner is called Noor", "category": "relationships"}
    """,
    "silences": """
        No updates on weekends, please.
        No information about her father, please never ask
        No memory of the accident
        Nothing is stored in the cloud at her firm
        None of these foods: nuts, eggs
        Keine Änderungen am Dienstag deployen
    """,
    "states": """
        The front door is locked with a Yale lock.
        light.kitchen is the lamp over the sink
        Thermostat set to 19 every night
        Turned off notifications for good in 2024
        Heating off in summer
        Playing chess in the park on Sundays
    """,
    "answers": """
        Assistant recommended Dr. Lind, user booked for May
        The bot told the user to see a doctor because of the mole
        Assistant should call the user "Captain" (his wish).
        The assistant should never mention his late wife
        user: thanks! / assistant: you're welcome / user: my son is called Ole
        User agreed to proceed with the IVF.
        AI responded wrongly about dosage, user went to hospital
        The agent checked the flat: mould in the bath
        User declined chemotherapy.
        I'll check in with Dana every Monday
        User replied with an apology to his brother
    """,
    "outputs": """
        status=single code=python
        Model: Fairphone 5
        404 Market Street is the office
        User restarted the medication
        User saved the house from fire in 2011
        model=Tesla Model Y
        Run `make lint` before pushing.
        Exit code 137 in CI means out of memory; the runner has 4 GB.
        All tests for Lyme were negative
        User tested positive.
    """,
}


def lines(texts):
    return [line.strip().replace(" / ", "\n") for line in texts.strip().splitlines()]


@pytest.mark.parametrize("family", JUNK)
def test_it_is_found(family):
    texts = lines(JUNK[family])
    found = find_junk(frame_of(texts))["id"].tolist()
    assert [text for number, text in enumerate(texts) if str(number) not in found] == []


@pytest.mark.parametrize("family", GOOD)
def test_what_looks_like_it_is_left(family):
    texts = lines(GOOD[family])
    assert [texts[int(number)] for number in find_junk(frame_of(texts))["id"]] == []


def test_a_label_before_what_another_memory_tells_is_an_echo():
    found = find_junk(frame_of(["User prefers aisle seats", "Saved: User prefers aisle seats"]))
    assert found[["id", "related_id"]].values.tolist() == [["1", "0"]]
