"""Texts with and without personal data, labelled by those who wrote them: sentences and made-up values.

The detector was made with these in view; `unseen` has others that were written afterwards. Numbers follow the
formats of their countries; those of telephones are drawn at random and belong to nobody in particular.
"""

import string
from random import Random
from typing import NamedTuple

SHAPED_PHONES = [
    "+1 ddd ddd dddd", "(2dd) ddd-dddd", "4dd-ddd-dddd", "3dd.ddd.dddd", "1-8dd-ddd-dddd", "+1-2dd-ddd-dddd",
    "020 7ddd dddd", "07ddd dddddd", "+44 20 7ddd dddd", "01632 96dddd", "+44 (0)1632 96dddd",
    "0800 ddd dddd",
    "030 2ddddddd", "0171 ddddddd", "+49 30 ddddd ddd", "030/2ddddddd", "(030) 2dddd ddd", "+49 (0)171 ddd dd dd",
    "01 dd dd dd dd", "06.dd.dd.dd.dd", "+33 6 dd dd dd dd", "0033 6 dd dd dd dd", "+34 6dd dd dd dd", "+34 9dddddddd",
    "+39 06 ddd dddd", "+39 3dd ddddddd", "020-ddddddd", "06-dddddddd", "+31 6 dddddddd", "08-ddd dd dd",
    "070-ddd dd dd",
    "+46 8 ddd dd dd", "044 ddd dd dd", "+41 44 ddd dd dd", "+43 1 ddddddd", "+45 dd dd dd dd", "+47 dd dd dd dd",
    "+358 9 dddd dddd", "+48 ddd ddd ddd", "+420 ddd ddd ddd", "+91 9dddd ddddd", "04dd ddd ddd", "(02) dddd dddd",
    "+61 4dd ddd ddd", "03-dddd-dddd", "090-dddd-dddd", "+81 90-dddd-dddd", "+86 138 dddd dddd", "(11) 9dddd-dddd",
    "+55 11 9dddd-dddd", "+7 495 ddd-dd-dd", "8 (495) ddd-dd-dd", "083 ddd dddd", "+27 83 ddd dddd", "+52 55 dddd dddd",
]  # fmt: skip
"""Formats that speak for themselves."""

BARE_PHONES = [
    "6dd ddd ddd", "22 dd dd dd", "5dd ddd ddd", "9dddd ddddd", "138 dddd dddd", "ddd dddd", "2dddddddd", "60dddddd",
    "32 dd dd dd", "55 dddd dddd", "3dd ddddddd", "2ddddddddd",
]  # fmt: skip
"""Formats that could be any number."""

SHAPED = [
    "Reach the plumber at {shaped}",
    "{shaped}",
    "New number since June: {shaped}. Tell the nursery.",
    "Dr. Kroll, {shaped}, only in the morning",
    "the vet ({shaped}) opens at nine",
    "Anna said to try {shaped} first",
    "Booking was confirmed; questions to {shaped} or by mail",
    "Die Praxis hat jetzt {shaped}",
    "Le plombier: {shaped}",
    "Taxi for the night is {shaped} and the driver is called Rik",
    "Bram - {shaped} - knows the way",
    "Call {shaped} x123 after six",
]
TOLD = [
    "my phone number is {bare}",
    "Call her on {bare} after lunch",
    "Tel. {bare}",
    "Mobile: {bare}",
    "you can text {bare}",
    "WhatsApp {bare} for the group",
    "Fax: {bare}",
    "They're not answering at {bare}",
    "Telefon {bare}, am besten abends",
    "Handynummer von Jonas: {bare}",
    "Mon téléphone est le {bare}",
    "su teléfono es {bare}",
    "Ring the school, {bare}, before eight",
    "{bare} (office)",
    "his landline is still {bare}",
    "Contact Maria at {bare}",
]
OTHERS = [
    "write to {email}",
    "Her mail is {email}, she answers at night.",
    "{email};{email}",
    "<{email}>",
    "pays with {card}",
    "Card {card_spaced}, valid until next year",
    "Visa ending soon: {card_dashed}.",
    "amex {amex}",
    "IBAN {iban}",
    "transfer it to {iban_spaced}, please",
    "Konto: {iban_spaced}.",
    "SSN {ssn}",
    "my social security number is {ssn_bare}",
    "Server at {ip} port 22",
    "the printer has {ipv6}",
    "ping {ip}: 12 ms",
    "NAS, {mac}, in the cellar",
    "Blog: {url}",
    "see {url}.",
    "({url})",
]
NOTHING = [
    "Born on 12 03 1986, moved 2019-04-30 at 12:30",
    "Order 4839 2271 0512 arrives on Friday",
    "ISBN 978-3-16-148410-0 is the cookbook",
    "Meeting id 845 2231 9087, camera off",
    "Between 2019 2020 and 2021 she moved three times",
    "Heating came to 1,284.50 euros, water to 220.10",
    "The city has 10 000 000 inhabitants",
    "GPS 52.520008, 13.404954 is the meeting point",
    "Ran 5.2 km in 34:12, pulse 142-167",
    "Version 1.2.3.4 of the firmware broke it",
    "Uses Python 3.12.1 and numpy 2.1.3",
    "Model 2023-4455-8877, serial 100200300400",
    "Tracking number 1Z 999 AA1 01 2345 6784",
    "Reference 31-0098-T, paid in ten instalments",
    "Policy RV-771-20418, see the binder",
    "Measured 200 x 100 x 35 mm, 12 pieces",
    "2020-04-30T03:00:00Z heartbeat",
    "1700000000000 is a timestamp in milliseconds",
    "Recipe: 400 g flour, 100 g rye, 350 g water, 10 g salt",
    "Tram 4 at 17:42, 17:48, 17:54 and 18:00",
    "Mentions user@localhost in the notes",
    "Decorators such as @property and @cached",
    "git clone git@github.com:someone/something.git",
    "std::vector<int> a::b c::d",
    "Ratio 16:9, not 4:3",
    "The lock is at 127.0.0.1 only",
    "Invoice no. 2024-000-1234 was paid",
    "Licence plate L-AB 1234, 80 kW",
    "Won 6-4 3-6 7-6 on Saturday",
    "Room 101-102, floors 10-12",
    "ISO 27001:2022 and DIN 5008",
    "Fibonacci 1 1 2 3 5 8 13 21 34 55 89 144",
    "Pi is 3.14159265358979",
    "Bus 110-120 every 10-15 minutes",
    "Account 12345678 at the old bank",
    "member 0049 8821, since 2011",
    "commit 9fceb02 and build 20240117.3",
    "Seats 112-118 in row 20",
    "Flight BA 117 on 24/12/2025 18:40",
    "Sales: 2019: 1200000, 2020: 1350000, 2021: 990000",
    "EAN 4006381333931 on the box",
    "UUID 550e8400-e29b-41d4-a716-446655440000",
]

MAILS = [
    "ilka.t@example.org",
    "frau_zschoche@lindenauer.example.com",
    "o'neill+list@mail.example.co.uk",
    "x@sub.example.museum",
]
URLS = [
    "https://ilka.example.org/about",
    "http://www.example.com/?q=a&b=1",
    "www.example.net/path",
    "https://example.org/a_(b)",
]
IBANS = [
    "DE89370400440532013000",
    "BE68539007547034",
    "GB82WEST12345698765432",
    "FR1420041010050500013M02606",
    "NL91ABNA0417164300",
]


class Labelled(NamedTuple):
    """A text, and what is in it: kind, start, end."""

    text: str
    spans: tuple


class Maker:
    """Made-up values, the same for the same seed."""

    def __init__(self, seed):
        self.random = Random(seed)

    def digits(self, shape):
        return "".join(self.random.choice(string.digits) if sign == "d" else sign for sign in shape)

    def card(self):
        body = self.digits(self.random.choice(["4ddddddddddddddd", "51dddddddddddddd", "6011dddddddddddd"]))[
            :15
        ]
        return body + self.check_digit(body)

    @staticmethod
    def check_digit(body):
        total = sum(
            sum(divmod(int(digit) * (2 - place % 2), 10)) for place, digit in enumerate(reversed(body))
        )
        return str(-total % 10)

    def value(self, name):
        card, iban = self.card(), self.random.choice(IBANS)
        amex = self.digits("37dddddddddddd")
        return {
            "shaped": ("phone", self.digits(self.random.choice(SHAPED_PHONES))),
            "bare": ("phone", self.digits(self.random.choice(BARE_PHONES))),
            "email": ("email", self.random.choice(MAILS)),
            "card": ("card", card),
            "card_spaced": ("card", " ".join(card[i : i + 4] for i in range(0, 16, 4))),
            "card_dashed": ("card", "-".join(card[i : i + 4] for i in range(0, 16, 4))),
            "amex": ("card", amex + self.check_digit(amex)),
            "iban": ("iban", iban),
            "iban_spaced": ("iban", " ".join(iban[i : i + 4] for i in range(0, len(iban), 4))),
            "ssn": ("ssn", self.digits("2dd-1d-3ddd")),
            "ssn_bare": ("ssn", self.digits("2dd1d3ddd")),
            "ip": ("ip", self.digits("10d.1d.17.2d")),
            "ipv6": ("ip", self.digits("2001:db8:85a3::8a2e:370:7ddd")),
            "mac": ("mac", self.digits("00:1b:44:1d:3a:bd")),
            "url": ("url", self.random.choice(URLS)),
        }[name]

    def fill(self, sentence):
        text, spans = "", []
        for literal, name, _, _ in string.Formatter().parse(sentence):
            text += literal
            if name:
                kind, value = self.value(name)
                spans.append((kind, len(text), len(text) + len(value)))
                text += value
        return Labelled(text, tuple(spans))


def make_corpus(sentences, nothing, *, seed, rounds=10):
    """Labelled texts of some sentences, each several times with other values, and texts without personal data."""
    maker = Maker(seed)
    filled = [maker.fill(sentence) for _ in range(rounds) for sentence in sentences]
    return filled + [Labelled(text, ()) for text in nothing]
