"""Keywords: words that announce a secret, by group, and what looks like one of them and is about something else."""

from __future__ import annotations

import re

from memframe.audit.language.vocabulary import one_of

_WIFI = r"(?:wi-?fi|wlan|wireless|network|hotspot|wpa[23]?|wep)"

SMALL = {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}
"""For `str.translate`: small letters without a change of any length."""

KEYWORD = re.compile(
    rf"""(?P<foreign>密码|密碼|パスワード|비밀번호)|(?<![^\W_])(?:
    (?P<recovery>
        (?:(?:backup|recovery|rescue|scratch|restore|emergency)[ -]?(?:codes?|keys?)|(?:2fa|mfa)\ (?:backup|recovery)s?
        |(?:wiederherstellungs|notfall|backup-)(?:codes?|schlüssel)|herstelcodes?
        |c[oó](?:digos?|des?)\ de\ (?:recuperaci[oó]n|respaldo|r[ée]cup[ée]ration|secours|recuperação)
        |codic[ei]\ di\ (?:recupero|backup))(?!\w))
    |(?P<totp>
        (?:totp|2fa|mfa|otp|authenticator|two-factor)[ -]?(?:app\ )?(?:setup[ -]|shared[ -])?
        (?:seed|secret|keys?)(?!\w))
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
        |codew[oö]rt|palabra\ secreta|mot\ secret|(?:telephone|phone|verbal|voice)\ password)
            (?:\ (?:del?\ |du\ |do\ )?(?:wi-?fi|wlan|router))?(?!\w)
        |(?:{_WIFI}[ -]?(?:key|schlüssel|code)|(?:{_WIFI}|router)[ -]?(?:pass|psk))(?!\w)
        |(?:clave|cl[ée]|chiave|chave|code|c[óo]digo|codice)\ (?:(?:del?|du|da|do|della?)\ )?(?:la\ )?
            (?:{_WIFI}|router|red|réseau|internet)(?!\w)
        |(?:1password|bitwarden|lastpass|keepass\w{{0,2}}|dashlane|enpass|vault)(?:['’]s)?\ master(?!\ pass)(?!\w)
        |pass(?=\s?[:=](?!\w))|pw(?=\s*[:=]|\s+(?:is|for|to)\b))
    |(?P<loose>(?:clave|pass(?=\s(?:for|to)\s))(?!\w))
    |(?P<login>(?:log-?in\ (?:details|data)|logins?|credentials?|creds|(?:zugangs|anmelde|login)daten
        |credenciales|identifiants|credenziali|inloggegevens)(?!\w))
    |(?P<pin>(?:pins?2?|puk2?|pincode|geheimzahl|geheimnummer|cvv2?|cvc2?)(?!\w)
        (?:[ -]?(?:codes?|number|nummer|no\.?))?)
    |(?P<code>(?:codes?|c[oó]digos?|codic[ei]|combinations?|combos?|combinaci[oó]n|combinaison|combinazione|combinatie
        |(?:zahlen)?kombination|(?:toegangs|deur)code
        |(?:(?:haus)?tür|zugangs|entsperr|sperr|alarm|garagen|eingangs|tor|tresor|safe|schloss|zutritts|zahlen)codes?
        )(?!\w))
    |(?P<lock>(?:(?:luggage|suitcase|bike|bicycle|koffer|fahrrad)\ ?(?:locks?|schlo(?:ss|ß))
        |lock\ ?box|key\ ?(?:pad|safe|box)|padlock|digicode|cadenas|candado|lucchetto|schlüsselsafe)(?!\w))
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

MARKS = "(?i)" + one_of(
    english=r"pass[ -]?(?:w|code|phrase), \bpass(?:\s?[:=]| (?:for|to)\b), \bpw\b, pwd, \bpsk\b, \blog-?ins?\b",
    german=r"kennw, geheim(?:zahl|nummer), schl[üu]ssel, daten\b, mädchenname, sicherheitsantw",
    french=r"mots? de passe, \bmdp\b, identifiants, \bcl(?:é|e\b), mot secret, jeune fille, r[ée]ponse",
    spanish="contrase, credencial, clave, palabra secreta, de soltera, respuesta",
    italian="parola, credenzial, chiave, codic[ei], da nubile",
    dutch="wachtwoord, inloggegevens, meisjesnaam",
    others=r"senha, chave, passord, l[oö]senord, adgangskode, has.o\b, salasana",
    scripts="пароль, 密码, 密碼, パスワード, 비밀번호",
    networks=rf"(?:{_WIFI}|router)[ -]?(?:pass|key|schl|code)",
    words=r"(?:secret|code|magic|safe|memorable|family|security|pickup)[ -]?word, codew, credential, \bcreds\b",
    numbers=r"\bpins?2?\b, \bpuk2?\b, pincode, \bcv[vc], codes?\b, c[oó]digo, \botp\b",
    keys=r"(?:backup|recovery|rescue|scratch|restore|emergency)[ -]?key, (?:\b|_)(?:key|token|secret|authtoken)s?\b",
    tokens=r"bearer, \bpat\b",
    masters=r"\bmaster\b",
    authenticators=r"totp, 2fa, \bmfa, authenticator, two-factor",
    bags="(?:luggage|suitcase|bike|bicycle|koffer|fahrrad) ?(?:lock|schlo)",
    locks="combina, kombination, combo, lock ?box, key ?(?:pad|safe|box), padlock",
    locks_elsewhere="digicode, cadenas, candado, lucchetto",
    answers="maiden name, answer",
)
"""A pattern of RE2 that every text with a secret of this kind matches."""

_ABOUT = one_of(
    programs="managers?, generators?, vaults?, storage, stores?, apps?, tools?, providers?, windows?",
    forms="backups?, fields?, prompts?, screens?, forms?, pages?, input, entry, headers?, layout, boards?, diodes?",
    rules="polic(?:y|ies), hygiene, protect\\w*, rules?, requirements?, management, managing, of conduct",
    amounts="limits?, usage, counts?, budget, expir\\w+, length, strength, timeout, less",
    events="rotations?, history, reuse, leaks?, breach\\w*, shar\\w+, review\\w*, freeze, replacement, assignment",
    texts="hints?, lists?, books?, sheets?, emails?, links?, words?, snippets?, examples?, names?, lookups?",
    queries=r"from \w+ where",
    others="hash\\w*, smell\\w*, base, style, cov\\w+, formats?, types?",
)
ABOUT = re.compile(rf"[ -]?{_ABOUT}\b(?![*!@#$%&_0-9])")
"""What is about passwords, PINs or codes and is none: a password manager, a token limit, a PIN diode."""
