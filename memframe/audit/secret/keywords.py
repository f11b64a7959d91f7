"""Keywords: words that announce a secret, by group, and what looks like one of them and is about something else."""

from __future__ import annotations

import re

_WIFI = r"(?:wi-?fi|wlan|wireless|network|router|hotspot|wpa[23]?|wep)"

SMALL = {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}
"""For `str.translate`: small letters without a change of any length."""

KEYWORD = re.compile(
    rf"""(?P<foreign>密码|密碼|パスワード|비밀번호)|(?<![^\W_])(?:
    (?P<recovery>
        (?:(?:backup|recovery|rescue|scratch|restore|emergency)[ -]?(?:codes?|keys?)
        |(?:wiederherstellungs|notfall|backup-)(?:codes?|schlüssel)|herstelcodes?
        |c[oó](?:digos?|des?)\ de\ (?:recuperaci[oó]n|respaldo|r[ée]cup[ée]ration|secours|recuperação)
        |codic[ei]\ di\ (?:recupero|backup))(?!\w))
    |(?P<once>
        (?:(?:verification|one[ -]time|otp|sms|2fa|two[ -]factor|authentication|authenticator|activation|sign-?in
        |log-?in)[ -](?:(?:pass)?codes?|passwords?|pin)
        |otp|best[äa]tigungscode|einmalcode|c[oó]digo\ de\ verificaci[oó]n|code\ de\ v[ée]rification
        |(?<=your\ )(?!promo|discount|coupon|gift|referral|voucher|zip|post|area|country|source|dress|booking|order
        |tracking|python|tax|product|course)[\w-]+\ code(?=\sis\b|:))(?!\w))
    |(?P<password>
        (?:pass[ -]?(?:words?|codes?|phrases?|w[oö]rte?r?)|passwd|passord|pwd|kennw[oö]rte?r?|wachtwoord(?:en)?
        |mots?\ de\ passe|mdp|contrase[ñn]as?|senhas?|lösenord(?:et)?|losenord|adgangskode|hasło|salasana|пароль
        |parola(?:\ d'ordine)?|psk|(?:secret|code|magic|safe|pickup|memorable|pass|security|family)[ -]?words?
        |memorable\ (?:dates?|names?|places?)
        |codew[oö]rt|palabra\ secreta|mot\ secret|(?:telephone|phone|verbal|voice)\ password)(?!\w)
        |{_WIFI}[ -]?(?:pass|key|schlüssel|code|psk)(?!\w)
        |(?:clave|cl[ée]|chiave|chave|code|c[óo]digo|codice)\ (?:(?:del?|du|da|do|della?)\ )?(?:la\ )?
            (?:{_WIFI}|red|réseau|internet)(?!\w)
        |pass(?=\s?[:=](?!\w))|pw(?=\s*[:=]|\s+(?:is|for|to)\b))
    |(?P<loose>(?:clave|pass(?=\s(?:for|to)\s))(?!\w))
    |(?P<login>(?:log-?in\ (?:details|data)|logins?|credentials?|creds|(?:zugangs|anmelde|login)daten
        |credenciales|identifiants|credenziali|inloggegevens)(?!\w))
    |(?P<pin>(?:pins?|puk|pincode|geheimzahl|geheimnummer|cvv2?|cvc2?)(?!\w)(?:[ -]?(?:codes?|number|nummer|no\.?))?)
    |(?P<code>(?:codes?|c[oó]digos?|codic[ei]|combinations?|combos?|combinaci[oó]n|combinaison|combinazione|combinatie
        |(?:zahlen)?kombination|(?:toegangs|deur)code
        |(?:(?:haus)?tür|zugangs|entsperr|sperr|alarm|garagen|eingangs|tor|tresor|safe|schloss|zutritts|zahlen)codes?
        )(?!\w))
    |(?P<lock>(?:lock\ ?box|key\ ?(?:pad|safe)|padlock|digicode|cadenas|candado|lucchetto|schlüsselsafe)(?!\w))
    |(?P<key>(?:keys?|bearer|(?:auth)?tokens?|secrets?|pat|(?:api-)?schlüssel|cl[ée]|chiave|chave)(?!\w))
    |(?P<answer>(?:mother|mum|mom)['’]?s\ maiden\ name|maiden\ name\ of\ (?:my|his|her|their|your|the)\ mother
        |mädchenname\ (?:meiner|seiner|ihrer|der)\ mutter|nom\ de\ jeune\ fille\ de\ (?:ma|sa|la)\ mère
        |apellido\ de\ soltera\ de\ (?:mi|su|la)\ madre|cognome\ da\ nubile\ di\ (?:mia|sua)\ madre
        |meisjesnaam\ van\ (?:mijn|zijn|haar)\ moeder|security\ answers?|secret\ answers?|challenge\ answers?
        |respuesta\ (?:secreta|de\ seguridad)|r[ée]ponse\ (?:secr[èe]te|de\ s[ée]curit[ée])|sicherheitsantwort)(?!\w)
    )""",
    re.VERBOSE,
)
"""In a text of small letters: without a switch for case the alternatives are told apart by their first letter."""

MARKS = (
    r"(?i)pass[ -]?(w|code|phrase)|passord|\bpass(\s?[:=]| (for|to)\b)|\bpw\b|pwd|kennw|wachtwoord"
    r"|mots? de passe"
    r"|\bmdp\b|contrase|senha|l[oö]senord|adgangskode|has.o\b|salasana|пароль|parola|密码|密碼|パスワード|비밀번호|\bpsk\b"
    r"|(wi-?fi|wlan|wireless|network|router|hotspot|wpa[23]?|wep)[ -]?(pass|key|schl|code)|\blog-?ins?\b"
    r"|credential"
    r"|\bcreds\b|daten\b|credencial|identifiants|credenzial|inloggegevens|(secret|code|magic|safe|memorable"
    r"|family|security"
    r"|pickup)[ -]?word|codew|palabra secreta|mot secret|respuesta|r[ée]ponse|sicherheitsantw|bearer"
    r"|\bpins?\b|\bpuk\b|pincode|geheim(zahl|nummer)|\bcv[vc]|codes?\b|c[oó]digo|codic[ei]|\botp\b"
    r"|(backup|recovery|rescue|scratch|restore|emergency)[ -]?key|combina|kombination|combo|schl[üu]ssel"
    r"|(\b|_)(key|token|secret|authtoken)s?\b|\bpat\b|\bcl(é|e\b)|clave|chiave|chave|maiden name|mädchenname"
    r"|jeune fille"
    r"|de soltera|da nubile|meisjesnaam|answer|lock ?box|key ?(pad|safe)|padlock"
    r"|digicode|cadenas|candado|lucchetto"
)
"""A pattern of RE2 that every text with a secret of this kind matches."""

ABOUT = re.compile(
    r"[ -]?(?:managers?|polic(?:y|ies)|hygiene|protect\w*|generators?|vaults?|fields?|prompts?|rules?"
    r"|requirements?"
    r"|hash\w*|hints?|storage|stores?|rotations?|history|strength|shar\w+|managing|management|reuse|leaks?"
    r"|breach\w*"
    r"|lists?|books?|sheets?|apps?|tools?|screens?|forms?|pages?|emails?|links?|limits?|usage|counts?"
    r"|windows?|budget"
    r"|expir\w+|length|less|review\w*|smell\w*|base|style|words?|of conduct|cov\w+|freeze|snippets?"
    r"|examples?|names?|lookups?"
    r"|formats?|headers?|types?|providers?|diodes?|boards?|layout|assignment|replacement|input|entry"
    r"|timeout)\b",
)
"""What is about passwords, PINs or codes and is none: a password manager, a token limit, a PIN diode."""
