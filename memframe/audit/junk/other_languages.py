"""Errands and manners in German, French and Spanish: what the user asked for, sent or waits for, and thanks.

As in `errands`, it takes both: a deed of a conversation, and a thing that there is only in a conversation. What says
that something holds for ever, or why it is asked, speaks against it.
"""

from __future__ import annotations

import re

from memframe.audit.junk.signs import Sign, quoted
from memframe.audit.language.vocabulary import one_of

_WHO = one_of(
    german=r"(?:der |die )?(?:be)?nutzer(?:in)?",
    french=r"l['’]utilisat(?:eur|rice)",
    spanish="(?:el |la )?usuari[oa]",
)
_DEED = one_of(
    german="""fragt(?:e)?, möchte, will, wollte, bittet, bat, braucht, wünscht(?: sich)?, wartet, hat(?: gerade)?""",
    french=r"demande, a demandé, veut(?: savoir)?, voudrait, souhaite, attend, a (?:envoyé|collé|partagé|téléversé)",
    spanish=r"""pide, pidió, quiere(?: saber)?, quisiera, pregunta, preguntó,
    (?:está )?esper(?:a|ando)(?: que termine)?, necesita, subió, envió, pegó,
    compartió, ha (?:subido|enviado|pedido|pegado)""",
)
_GERMAN_THING = one_of(
    """text, absatz, satz, antwort, bild, datei, pdf, code, screenshot, artikel, e-?mail, mail, brief, liste, tabelle,
    titel, überschrift, vorschlag, tests?, build, version, fehlermeldung, zusammenfassung, übersetzung, gedicht,
    witz, rezept"""
)
_FRENCH_THING = one_of(
    """texte, phrase, paragraphe, réponse, image, fichier, pdf, code, capture d['’]écran, article, e-?mail, courriel,
    lettre, liste, tableau, compilation, tests, titre, version, résumé, traduction, poème, blague, recette,
    orthographe"""
)
_SPANISH_THING = one_of(
    """texto, frase, párrafo, respuesta, imagen, archivo, fichero, pdf, código, captura de pantalla, artículo, correo,
    carta, lista, tabla, compilación, pruebas, título, versión, resumen, traducción, poema, chiste, receta,
    ortografía"""
)
_THING = rf"(?:{_GERMAN_THING}(?:e?[ns]|e)?|{_FRENCH_THING}s?|{_SPANISH_THING}(?:e?s)?)"
_OF_THE_MOMENT = one_of(
    german=r"ins (?:englische|deutsche|französische|spanische), wetter, wie spät, wie viel uhr, uhrzeit, übersetz\w+",
    french=r"en (?:anglais|français|allemand|espagnol), météo, (?:temps fait|quel temps), quelle heure, tradui\w+",
    spanish=r"al (?:inglés|español|alemán|francés), qué tiempo, el tiempo, qué hora, traduc\w+",
)
_ERRAND = re.compile(
    rf"\W{{0,3}}{_WHO} {_DEED}\b[^\n]{{0,80}}\b(?:{_THING}|{_OF_THE_MOMENT})\b[^\n]{{0,40}}", re.IGNORECASE
)
_LASTING = re.compile(
    r"\b"
    + one_of(
        german=r"""immer, stets, antworten, vorschläge, jede[nmrs]?, nie, grundsätzlich, weil, denn, da, bevorzugt,
        mag, künftig, generell, auf (?:deutsch|englisch)""",
        french=r"toujours, des, chaque, jamais, car, parce, puisque, préfère, aime, désormais, allerg\w+, sans",
        spanish=r"""siempre, (?:quiere|pide|necesita) \w+s,
        cada, nunca, porque, ya que, prefiere, le gusta, alérg\w+, sin""",
    )
    + r"\b",
    re.IGNORECASE,
)
_GOOD = one_of(
    german="hallo, danke, tschüss, guten \\w+, gute nacht",
    french="bonjour, merci, au revoir, salut, bonsoir, bonne nuit",
    spanish="hola, gracias, adiós, buen[oa]s \\w+",
)
_MANNERS = re.compile(
    rf"\W{{0,3}}{_WHO} "
    + one_of(
        german=rf"(?:hat|sagte?) {_GOOD}(?: gesagt)?, hat sich (?:bedankt|verabschiedet), grüßte?",
        leaving="(?:bedankte?|verabschiedete?) sich",
        french=rf"a dit {_GOOD}, a remercié, remercie, salue, a salué",
        spanish=rf"dio (?:las )?gracias, dijo {_GOOD}, saludó, se despidió, agradeció",
    )
    + r"(?: [^\W\d_]+['’]?[^\W\d_]*){0,2}[.!]?\s*",
    re.IGNORECASE,
)
_LONGEST, _SCORE = 200, 0.9

MARKS = rf"(?i)^\W{{0,3}}{_WHO}\s"
"""A pattern of RE2 that every such text matches."""


def judge_other_languages(text: str) -> Sign | None:
    """Something that was asked for in passing, or said out of manners.

    >>> judge_other_languages("L'utilisateur demande un résumé de l'article.").kind
    'task_state'
    >>> judge_other_languages("L'utilisateur demande toujours des réponses courtes.")
    """
    if len(text) > _LONGEST:
        return None
    if _MANNERS.fullmatch(text):
        return Sign("session_noise", _SCORE, f"an event of a conversation: {quoted(text)}")
    if _ERRAND.fullmatch(text) and not _LASTING.search(text):
        return Sign("task_state", _SCORE, f"asked or done in passing: {quoted(text)}")
    return None
