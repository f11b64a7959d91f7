"""States: what a device of a house was or did at a moment, as a home assistant logs it.

Only what is such a state as a whole counts: how a lamp is called, when it is to be switched on and who may do so is
somebody's wish, and lasts.
"""

from __future__ import annotations

import re

from memframe.audit.junk.signs import Sign, quoted
from memframe.audit.language.vocabulary import one_of

_DOMAIN = one_of(
    switched="light, switch, fan, lock, cover, valve, siren, humidifier, input_boolean, plug",
    measured="sensor, binary_sensor, climate, water_heater, weather, sun, device_tracker, person, zone",
    run="automation, scene, script, media_player, vacuum, camera, alarm_control_panel, timer, update",
)
_PLACE = one_of(
    rooms="living[ -]?room, bed[ -]?room, bath[ -]?room, kitchen, hall(?:way)?, office, attic, basement, dining room",
    around="front, back, garden, garage, patio, porch, balcony, upstairs, downstairs, kids['’]?, guest, main, side",
)
_DEVICE = one_of(
    lights="lights?, lamps?, led strip, ceiling light",
    doors="door, doors, gate, window, windows, blinds?, shutters?, curtains?, lock",
    climate="thermostat, heating, heater, ac, air conditioning, fan, boiler, radiator, humidifier, purifier",
    machines="""washing machine, washer, dryer, tumble dryer,
    dishwasher, vacuum(?: cleaner)?, robot vacuum, oven, coffee
    (?:machine|maker), kettle, fridge, printer""",
    media="tv, television, music, radio, speakers?, volume",
    others="alarm, timer, sprinklers?, irrigation, camera, doorbell, plug, switch, charger, motion sensor",
)
_THING = rf"(?:the )?(?:(?:{_PLACE}) ){{0,2}}{_DEVICE}"
_BECAME = one_of(
    switched=r"(?:turned|switched) (?:on|off), (?:un)?locked, opened, closed, dimmed, on, off, muted, armed, disarmed",
    set="(?:set|dimmed|turned (?:up|down)) to [0-9]+ ?(?:%|°C?|degrees)?(?: for now| now)",
    worked=r"started, stopped, paused, resumed, finished(?: (?:its|the) (?:\w+ )?(?:cycle|program(?:me)?|run))?",
    rests="docked(?: and charging)?, charging, idle, offline, online, unavailable, dismissed, snoozed, ringing, ringed",
)
_WHEN = r"(?:\W{1,3}(?:at )?[0-9]{1,2}[:.][0-9]{2}(?::[0-9]{2})?(?: ?[ap]m)?| (?:now|just now|again|for now)){0,2}"
_IS = r"(?: (?:is|are|was|were|has|have|been|being|now|currently|just)){0,3}"
_STATE = re.compile(
    one_of(
        entities=rf"{_DOMAIN}\.[a-z0-9_]{{1,60}}\s?(?:[:=]|->|→|is|was|changed to|turned)\s?[^\s,;]{{1,24}}"
        r"(?: ?(?:°?[CF]|%|W|kWh|lx|hPa|ppm))?",
        things=rf"{_THING}{_IS} {_BECAME}",
        deeds=rf"(?:just |i )?(?:turned|switched) (?:on|off|up|down) {_THING}",
        timers=r"timer (?:was )?set (?:for|to) [\w.]{1,5} (?:s|sec|seconds|min|minutes?|hours?), alarm (?:was )?set"
        r" (?:for|to) [0-9: apm]{1,8} (?:today|tomorrow|tonight)",
        playing=rf"(?:now )?playing [\w' -]{{2,40}} (?:in|on) (?:the )?(?:{_PLACE}(?: speakers?)?|speakers?|tv)",
        motion=r"(?:motion|movement|person|smoke|leak) (?:was )?detected(?: (?:in|at|by|on) (?:the )?[\w ]{2,30}?)?",
    )
    + _WHEN
    + r"[.!]?\s*",
    re.IGNORECASE,
)
_LONGEST = 120

MARKS = (
    rf"(?i)^\W{{0,3}}(?:{_DOMAIN}\.[a-z]|(?:just |i )?(?:turned|switched) |(?:motion|movement|person|smoke|leak) "
    rf"|(?:now )?playing "
    rf"|(?:the )?(?:{_PLACE} ){{0,2}}{_DEVICE}\b)"
)
"""A pattern of RE2 that every such text matches."""


def judge_state(text: str) -> Sign | None:
    """What a device was or did at a moment.

    >>> judge_state("light.kitchen: off").kind, judge_state("Turned off bedroom lamp.").kind
    ('status_report', 'status_report')
    >>> judge_state("The bedroom lamp is called Moon")
    """
    if len(text) > _LONGEST or not _STATE.fullmatch(text.strip()):
        return None
    return Sign("status_report", 0.9, f"the state of a device: {quoted(text)}")
