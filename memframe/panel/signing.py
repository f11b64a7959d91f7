"""The first section: the developer signs in."""

from __future__ import annotations

from urllib.parse import urlsplit

from memframe.panel import markup
from memframe.panel.desk import Desk, Moment
from memframe.panel.fields import LABELS, EnterKey, SecretField, button, html, show, text_field, text_of
from memframe.panel.section import Section


class Signing(Section):
    """Address and API key, or what is known of them."""

    number, title = 1, "Sign in"

    def __init__(self, desk: Desk, enter: EnterKey) -> None:
        self._intro = html()
        self._address = text_field(LABELS["base_url"], "https://memory.example/api/v1")
        self._key = SecretField(LABELS["api_key"])
        self._sign_in = button(desk, "Sign in", self._clicked, "primary")
        self._sign_out = button(desk, "Sign out", desk.sign_out, "quiet")
        super().__init__(
            desk, [self._intro, self._address, self._key.widget], [self._sign_in], [self._sign_out]
        )
        self.submit_on_enter(enter, self._sign_in, self._address, self._key.widget)

    def draw(self, moment: Moment, due: int) -> None:
        super().draw(moment, due)
        show(self._sign_out, moment.stand.client is not None)

    def draw_body(self, moment: Moment) -> None:
        is_known = moment.origins is not None
        has_failed = moment.stand.trouble is not None
        asks = {name: is_known and (name in moment.lacking or has_failed) for name in ("base_url", "api_key")}
        show(self._address, asks["base_url"])
        show(self._key.widget, asks["api_key"])
        show(self._sign_in, is_known)
        self._intro.value = _intro(moment)

    def summary(self, moment: Moment) -> str:
        client = moment.stand.client
        origin = (moment.origins or {}).get("api_key")
        key = f", with the key from {origin}" if origin else ""
        return markup.text(f"At {urlsplit(client.base_url).netloc}{key}.") if client else ""

    def _clicked(self) -> None:
        address = text_of(self._address)
        lacking = self.desk.moment.lacking
        if "base_url" in lacking and not address:
            self.ask_for(f"Fill in “{LABELS['base_url']}” first.", self._address)
        elif "api_key" in lacking and self._key.is_empty:
            self.ask_for(f"Fill in “{LABELS['api_key']}” first.", self._key.widget)
        else:
            self.desk.start(lambda: self.spend(self._key, lambda key: self.desk.enter(key, address)))


def _intro(moment: Moment) -> str:
    if moment.origins is None:
        return markup.note("Looking for your settings …")
    if "api_key" in moment.lacking:
        return markup.paragraph(
            "With the developer's API key, which stays in the memory of this kernel. To have it kept in the "
            "keyring of your computer, run `memframe login` there."
        )
    return markup.paragraph(f"With the key from {moment.origins['api_key']}.")
