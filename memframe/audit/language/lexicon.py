"""Words of closed classes: those that carry no value, that deny, that stand in for each other, that wrap.

Everything else is taken for a word that carries a value. The lists are short on purpose, and without
accents, as `memframe.audit.language.words` has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

_LIGHT = {
    "en": """
        a about actually after again all already also am an and any anyway apparently are as at back basically be
        because been before being both but by certainly could currently definitely did do does doing done each else
        even ever every for from generally
        get gets given go goes got had has have having he her here hers herself him himself his honestly how i if in
        indeed into is it its itself just let literally made make makes me meanwhile might mine much must my myself
        now obviously of off oh ok okay on or other our ours ourselves out own per please possibly presumably probably
        quite rather really shall she should simply since so some something somewhat still such than that the their
        them themselves then there these they this those though through thus to too under until up upon us usually very
        was we were what when where which while who whom whose why will with within would yes yet you your yours nd rd
        st th etc eg ie via re mr mrs ms dr user users
    """,
    "de": """
        aber als auch auf aus bei beim bis bist da damit dann das dass dem den der dessen deren die dies diese diesem
        diesen dieser dieses doch du durch ein eine einem einen einer eines er es etwa etwas euch fur habe haben hatte
        ich ihm ihn ihr ihre ihren im ist jede jedem jeden jeder jedes kann mehr mein meine mich mir mit nach noch
        ob oder schon sehr seine seinen sich sie sind soll sondern uber um und uns unser vom von vor waren wenn wer
        werden wie wieder wir wird wo wurde zu zum zur
    """,
    "fr": """
        ai alors au aussi aux avec avons ce cela ces cet cette chez comme dans de du donc elle elles en encore et etait
        eu il ils je la le les leur leurs lui ma mes moi ne nos notre nous ou par parce qu que qui sa ses sont ta te
        tes toi tous toute toutes un une vos votre vous
    """,
    "es": """
        con cual cuando cuyo de del desde donde ella ellas ellos esa ese eso esta este esto ha han hasta hay la las lo
        los mas mis muy para pero por porque que ser sobre su sus tambien tiene todo tus una uno unos ya yo
    """,
    "user": "nutzer nutzers nutzerin benutzer benutzerin utilisateur utilisatrice usuario usuaria utente gebruiker",
    "it_nl_pt": """
        ao aos che ci da dal dalla degli dei della het hij ik je jij maar mijn naar nel nella num numa ook op os per piu
        si sono uma voor wij wordt worden ze zich zij zijn
    """,
    "zh_ja": "的 了 是 在 和 也 就 都 我 你 他 她 们 个 着 过 吧 呢 吗 は が を に で と も の へ ね よ です ます",
    "ar": "و في من على الى إلى عن ان أن إن هو هي هذا هذه ذلك مع كان كانت قد ثم او أو التي الذي",
}

_ARTICLES = "a an ein eine einen einem einer een un une una uno um uma"

_NEGATIONS = """
    not no never none nothing nobody nowhere neither nor without cannot hardly barely scarcely seldom rarely except
    stopped stops stop quit cancelled canceled former formerly anymore unless false untrue dislike dislikes disliked
    minus nicht kein keine keinen keiner keinem keines nie niemals ohne nichts niemand nirgends weder
    pas jamais sans aucun aucune rien personne non nunca jamas sin ningun ninguno ninguna nada nadie tampoco
    mai senza nessuno nessuna niente niet geen nooit zonder niets nao sem nenhum nenhuma
    не нет ни без никогда нельзя nie nigdy bez zaden ne nikdy inte ikke ingen aldrig ei ole degil yok
    不 没 沒 無 无 未 非 别 ん ない 안 않 못 없 아니 لا ليس ليست لم لن بدون غير
"""

DECIMAL, MINUTES, MONTH = "·", "¦", "¤"
"""What stands in words for the point of a decimal, for the colon of a time of day, and before the number of a month."""

_CALENDAR = """
    january/jan/januar/janvier/enero/gennaio february/feb/februar/fevrier/febrero/febbraio march/mar/marz/mars/marzo
    april/apr/avril/abril/aprile may/mai/mayo/maggio june/jun/juni/juin/junio/giugno
    july/jul/juli/juillet/julio/luglio august/aug/aout/agosto september/sep/sept/septembre/septiembre/settembre
    october/oct/oktober/octobre/octubre/ottobre november/nov/novembre/noviembre
    december/dec/dezember/decembre/diciembre/dicembre monday/mon/montag/montags/lundi/lunes/lunedi
    tuesday/tue/tues/dienstag/dienstags/mardi/martes/martedi
    wednesday/wed/mittwoch/mittwochs/mercredi/miercoles/mercoledi
    thursday/thu/thur/thurs/donnerstag/donnerstags/jeudi/jueves/giovedi
    friday/fri/freitag/freitags/vendredi/viernes/venerdi
    saturday/sat/samstag/samstags/sonnabend/samedi/sabado/sabados/sabato
    sunday/sun/sonntag/sonntags/dimanche/domingo/domingos/domenica
"""

_TIMES = """
    today tomorrow yesterday tonight morning mornings afternoon afternoons evening evenings night nights daytime
    daily weekly fortnightly monthly quarterly yearly annually weekday weekdays weekend weekends
    spring summer autumn fall winter heute morgen gestern abends morgens mittags nachts fruhling sommer herbst winter
    matin soir nuit hier demain printemps ete automne hiver manana tarde noche ayer primavera verano otono invierno
"""

_NUMBERS = """
    1/one/first/once 2/two/second/twice/zwei/deux/dos/ii 3/three/third/thrice/drei/trois/tres/iii
    4/four/fourth/vier/quatre/cuatro 5/five/fifth/funf/cinq/cinco 6/six/sixth/sechs/seis
    7/seven/seventh/sieben/siete 8/eight/eighth/acht/huit/ocho 9/nine/ninth/neun/neuf/nueve
    10/ten/tenth/zehn/dix/diez 11/eleven/eleventh/elf/onze 12/twelve/twelfth/dozen/noon/zwolf/douze/doce
    13/thirteen/dreizehn/treize/trece 14/fourteen 15/fifteen 16/sixteen 17/seventeen 18/eighteen 19/nineteen
    20/twenty/zwanzig/vingt/veinte 30/thirty 40/forty 50/fifty 60/sixty 70/seventy 80/eighty 90/ninety
    100/hundred/hundreds 1000/thousand/thousands/k 1000000/million/millions 1000000000/billion/billions
"""

_UNITS = """
    euro/euros/eur dollar/dollars/usd/bucks pound/pounds/gbp/quid/lb/lbs percent/pct cent/cents franc/francs/chf
    yen/jpy kilometre/kilometer/kilometres/kilometers/km/kms metre/meter/metres/meters/m
    centimetre/centimeter/centimetres/cm millimetre/millimeter/millimetres/mm mile/miles/mi
    kilogram/kilograms/kilo/kilos/kg/kgs gram/grams/gramme/g/gr milligram/milligrams/mg ounce/ounces/oz
    litre/liter/litres/liters/l millilitre/milliliter/millilitres/ml seconds/sec/secs minute/minutes/min/mins
    hour/hours/hr/hrs/h week/weeks/wk/wks month/months/mth/mths year/years/yr/yrs/annum degree/degrees/deg celsius/c
"""

_SAME = """
    street/st road/rd avenue/ave number/nr versus/vs approximately/approx/roughly/circa/ca appointment/appt
    birthday/bday trip/journey lesson/class lessons/classes
    department/dept apartment/apt/flat company/co information/info telephone/phone/tel advertisement/ad
    application/app photograph/photo/photographs/photos refrigerator/fridge mother/mom/mum/mama father/dad/papa
    mothers/moms/mums fathers/dads grandmother/grandma/granny grandfather/grandpa/granddad child/kid/children/kids
    brother/bro sister/sis movie/film/movies/films car/automobile/cars house/home/houses/homes
    job/work/works/working/worked/jobs position/role holiday/vacation/holidays/vacations shop/store/shops/stores
    town/city physician/doctor/doc
    like/enjoy/love/adore/likes/enjoys/loves/adores/liked/enjoyed/loved/want/wish/desire/wants/wishes/desires/wanted
    prefer/favor/favour/favours/prefers/favorite/favourite/preferred
    live/reside/dwell/lives/resides/dwells/lived/resided/living/residing
    buy/purchase/acquire/buys/purchases/acquires/bought/purchased/acquired/buying/purchasing
    begin/start/commence/begins/starts/commences/began/begun/started/commenced/beginning/starting
    end/finish/complete/conclude/ends/finishes/completes/concludes/ended/finished/completed/concluded
    need/require/needs/requires/needed/required
    use/utilise/utilize/uses/utilises/utilizes/using/used/utilised/utilized
    help/assist/aid/helps/assists/aids/helped/assisted employ/employs/employed big/large/huge bigger/larger
    biggest/largest small/little/tiny quick/fast/rapid/speedy/quickly/rapidly often/frequently/regularly
    typically/normally/generally mostly/mainly/primarily/chiefly sometimes/occasionally maybe/perhaps
    recently/lately soon/shortly happy/glad/pleased/delighted sad/unhappy ill/sick/unwell angry/mad/cross
    afraid/scared/frightened beautiful/pretty/lovely important/significant/essential hard/difficult/tough
    easy/simple receive/obtain/receives/obtains/received/obtained
    give/hand/provide/gives/hands/provides/gave/handed/provided keep/retain/keeps/retains/kept/retained
    speak/talk/chat/speaks/talks/chats/spoken/spoke/talked/chatted
    say/state/mention/tell/says/states/mentions/tells/said/stated/mentioned/told/noted
    ask/request/inquire/asks/requests/inquires/asked/requested
    answer/reply/respond/answers/replies/responds/answered/replied/responded
    fix/repair/mend/fixes/repairs/mends/fixed/repaired/mended create/build/creates/builds/created/built
    show/display/shows/displays/showed/displayed/shown
    think/believe/feel/thinks/believes/feels/thought/believed/felt know/understand/knows/understands
    choose/select/pick/chooses/selects/picks/chose/chosen/selected/picked visit/see/visits/sees/visited/saw
    move/relocate/moves/relocates/moved/relocated
    travel/head/travels/heads/travelled/traveled/headed/went arrive/come/arrives/comes/arrived/came
    plan/intend/aim/plans/intends/aims planned/scheduled meet/gather/meets/gathers called/named/titled
    practice/practise/practices/practises pay/spend/pays/spends/paid/spent cost/price/costs/priced earn/earns
    attend/join/attends/joins own/possess/owns/possesses send/mail/sends/mails/sent/mailed
    teach/instruct/teaches/instructs/taught learn/study/learns/studies try/attempt/tries/attempts/tried/attempted
    furthermore/additionally/moreover however/although/though because/since therefore near/close/nearby
    next/upcoming/following final/last entire/whole various/several everybody/everyone somebody/someone till/until
    among/amongst while/whilst toward/towards regarding/concerning leave/depart/leaves/departs
    left/departed/remaining fly/flies/flew/flight/flights allergic/allergy/allergies member/membership
    marry/marries/marriage friend/pal/buddy friends/pals/buddies family/relatives color/colour colors/colours
    colored/coloured flavor/flavour flavors/flavours neighbor/neighbour neighbors/neighbours
    neighborhood/neighbourhood behavior/behaviour labor/labour honor/honour humor/humour harbor/harbour rumor/rumour
    center/centre centers/centres theater/theatre fiber/fibre grey/gray tire/tyre tires/tyres program/programme
    programs/programmes license/licence licenses/licences jewelry/jewellery pajamas/pyjamas yogurt/yoghurt
    donut/doughnut traveler/traveller traveling/travelling modeling/modelling organize/organise
    organized/organised organizes/organises apologize/apologise recognize/recognise realize/realise
    aluminum/aluminium mold/mould mustache/moustache skeptical/sceptical defense/defence catalog/catalogue
    dialog/dialogue tumor/tumour anemia/anaemia leukemia/leukaemia pediatrician/paediatrician
    gynecologist/gynaecologist orthopedic/orthopaedic
    fils fille/filles amie/amies voisine/voisines cousine/cousines
"""
"""Of which it does not matter which one stands there: spellings, abbreviations, units, everyday synonyms."""

_FORMS = """
    become/becomes/became bring/brings/brought catch/catches/caught drink/drinks/drank/drunk drive/drives/drove/driven
    eat/eats/ate/eaten feed/feeds/fed fight/fights/fought find/finds/found grow/grows/grew/grown hang/hangs/hung
    hear/hears/heard hide/hides/hid/hidden hold/holds/held lead/leads/led lend/lends/lent lose/loses/lost
    ride/rides/rode/ridden ring/rings/rang/rung run/runs/ran sing/sings/sang/sung sit/sits/sat sleep/sleeps/slept
    stand/stands/stood steal/steals/stole/stolen swim/swims/swam/swum swing/swings/swung take/takes/took/taken
    throw/throws/threw/thrown wake/wakes/woke/woken wear/wears/wore/worn win/wins/won write/writes/wrote/written
    draw/draws/drew/drawn
"""
"""Forms of verbs that no ending tells."""

_PASTS = """
    ate became began bought brought built came caught chose drank drew drove fed felt flew fought found gave grew
    hung heard held hid kept led lent lost paid ran rang rode said sang sat saw sent slept spent spoke stole stood swam
    taught thought threw told took went woke won wore wrote
"""

_INTENDING = """
    plan plans planned planning intend intends intended hope hopes hoping wish wishes consider considers considering
    maybe perhaps almost nearly try tries tried attempt attempts attempted refuse refuses refused fail fails failed
    might dreams wants wanted going
"""

_OPPOSITES = """
    before/after in/out on/off up/down over/under above/below more/less most/least all/none everything/nothing
    everyone/nobody everybody/nobody always/never yes/no with/without can/cannot from/to inside/outside many/few
    both/neither must/may into/out against/for until/from since/until since/before until/after by/after as/with
    vor/nach auf/unter avant/apres antes/despues
    early/late might/will may/will all/some every/some
    this/next this/last next/last next/previous previous/following north/south east/west left/right top/bottom
    like/hate love/hate like/dislike love/dislike enjoy/hate want/refuse adore/loathe like/loathe like/detest
    accept/decline accept/reject accept/refuse pass/fail win/lose remember/forget agree/refuse allow/forbid
    allow/ban increase/decrease increase/reduce raise/lower rise/fall gain/lose add/remove start/stop open/closed
    open/close active/inactive true/false positive/negative public/private old/new old/young older/younger
    elder/younger oldest/youngest eldest/youngest short/long shorter/longer hot/cold warm/cold warmer/colder
    big/small bigger/smaller high/low higher/lower tall/short taller/shorter fast/slow faster/slower cheap/expensive
    easy/hard rich/poor good/bad better/worse best/worst strong/weak light/dark light/heavy clean/dirty
    safe/dangerous full/empty married/single alive/dead present/absent alone/together fewer/more less/most
    maximum/minimum max/min buy/sell bought/sold lend/borrow lent/borrowed arrive/depart arrives/departs first/last
    loud/quiet near/far right/wrong healthy/ill success/failure friend/enemy own/rent owns/rents approve/reject
    trust/doubt support/oppose with/for with/near with/from for/from in/near at/near
    on/under in/under in/behind on/behind
"""

_CHANGING = """
    switched switches switching changed changes moved relocated migrated upgraded downgraded transferred replaced raised
    increased lowered reduced rebooked postponed rescheduled renamed promoted cancelled canceled sold quit left dropped
    stopped resigned retired ended instead longer anymore previously formerly broke divorced separated died correction
    expired closed discontinued
"""

_LIMITING = """
    only solely exclusively less more fewer least most mostly alternate nur weniger mehr seulement solo solamente
"""

_CONDITIONS = "if when whenever would could should will shall wenn falls si cuando"

_UNLIKE = """
    ex law step half acting interim deputy vice assistant alleged supposed potential future fake mock imitation
    artificial decaf decaffeinated vegan substitute non anti semi pseudo
"""


def _groups(text: str) -> list[list[str]]:
    return [group.split("/") for group in text.split()]


def _by_word(text: str, mark: str) -> dict[str, str]:
    return {word: mark + group[0] for group in _groups(text) for word in group}


NEGATIONS = frozenset(_NEGATIONS.split())
LIGHT = frozenset(" ".join(_LIGHT.values()).split()) - NEGATIONS
ARTICLES = frozenset(_ARTICLES.split())
"""Light words that say «one» where the other text has a number."""
USERS = frozenset({"user", "users"})
"""Light words that stand where other texts have a name."""
CHANGING = frozenset(_CHANGING.split())
"""Words that tell of a change: a text that has one of them more is no copy."""
INTENDING = frozenset(_INTENDING.split())
"""Words that tell of what has not happened: likewise."""
PASTS = frozenset(_PASTS.split())
"""Verbs in the past that no ending tells."""
LIMITING = frozenset(_LIMITING.split())
"""Words that take something back: likewise."""
CONDITIONS = frozenset(_CONDITIONS.split())
"""Light words that say on what terms something is: likewise, where they stand before the rest of it."""
UNLIKE = frozenset(_UNLIKE.split())
"""Words beside which a thing is another one: decaf coffee, an ex-wife, a sister-in-law, a deputy head. Likewise."""
CALENDAR = frozenset(word for group in _groups(_CALENDAR) for word in group)
"""Months and days of the week."""
UNITS = frozenset(word for group in _groups(_UNITS) for word in group)
"""What numbers count: a number and its unit are one value."""
TIMES = CALENDAR.union(_TIMES.split())
"""Words of which another one says that it is another time."""
CLASSES: Mapping[str, str] = {
    **_by_word(_UNITS + _SAME + _FORMS, "="),
    **_by_word(_CALENDAR, "="),
    **{
        f"{MONTH}{n:{width}}": f"={group[0]}"
        for n, group in enumerate(_groups(_CALENDAR)[:12], 1)
        for width in ("", "02")
    },
    **_by_word(_NUMBERS, ""),
    **dict.fromkeys(NEGATIONS, "=not"),
}
"""Words that say the same, by the name of what they say."""
MONTHS: Mapping[str, int] = {word: n + 1 for n, group in enumerate(_groups(_CALENDAR)[:12]) for word in group}

OPPOSITES: tuple[tuple[str, str], ...] = tuple(
    (one, other) for group in _groups(_OPPOSITES) for one, other in combinations(group, 2)
)
"""Words whose exchange turns a sentence around."""
