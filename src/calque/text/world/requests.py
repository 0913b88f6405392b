"""Requests to an assistant: sentences with an intent and slots."""

from __future__ import annotations

from calque.text.world.constructions import asked, construction
from calque.text.world.meaning import ME, Draw, Node
from calque.text.world.phrases import (
    amount,
    joined,
    location,
    mark_entity,
    mark_slot,
    person,
    pronoun,
    thing,
    with_case,
    with_subject,
)


def _request(d: Draw, name: str, *parts: Node | None, ways: str = "order order please wish question") -> Node:
    """A wish with its parts, in one of the ways that wishes are put."""
    verb = d.word(name, "VERB", "root").add(*parts)
    way = d.among(ways)
    if way == "question":
        verb.modal = d.word(d.among("can could would"), "AUX", "aux")
        verb.tense = "pres"
        return asked(with_subject(verb, pronoun(d, "you", "nsubj")))
    if way == "wish":
        verb.tense, verb.rel, verb.agreement = "inf", "xcomp", ME
        wish = d.word(d.among("want need"), "VERB", "root")
        wish.tense = "pres"
        return with_subject(wish, pronoun(d, "I", "nsubj")).add(verb)
    verb.tense = "imp"
    return verb.add(d.word("please", "ADV", "advmod", "comment")) if way == "please" else verb


def _slot(d: Draw, label: str, prep: str, noun: Node) -> Node:
    return with_case(d, prep, mark_slot(noun, label))


def _date(d: Draw) -> Node:
    if d.chance(0.5):
        return _slot(d, "date", "on", d.node(d.entry("name", "weekday").lemma, "obl"))
    return mark_slot(d.word(d.among("tomorrow tonight today"), "ADV", "advmod", "time"), "date")


def _clock(d: Draw, prep: str = "at") -> Node:
    return _slot(d, "time", prep, d.node(d.entry("number", "clock").lemma, "obl"))


def _restaurant(d: Draw, prep: str) -> Node:
    return _slot(d, "restaurant", prep, mark_entity(d.node(d.entry("name", "dining").lemma, "obl"), "ORG"))


def _one(d: Draw, name: str) -> Node:
    return d.word(name, "NOUN", "obj").add(d.word("a", "DET", "det"))


@construction(1.2, intent="book_flight")
def book_flight(d: Draw) -> Node:
    """Book a flight from Oslo to Madrid on Friday."""
    flight = _one(d, "flight")
    if d.chance(0.7):
        flight.add(_slot(d, "from_city", "from", location(d, "nmod")))
    flight.add(_slot(d, "to_city", "to", location(d, "nmod")))
    return _request(d, d.among("book reserve"), flight, _date(d))


@construction(intent="book_table")
def book_table(d: Draw) -> Node:
    """Can you book a table for four at Rialto tonight?"""
    guests = _slot(d, "count", "for", d.node(d.entry("word", "NUM").lemma, "obl"))
    parts = (_one(d, "table.furniture"), guests, _restaurant(d, "at"), _date(d))
    return _request(d, d.among("book reserve"), *parts, _clock(d) if d.chance(0.5) else None)


@construction(intent="order_food")
def order_food(d: Draw) -> Node:
    """Please order three hot pizzas and lemonade from Sakura."""
    food = mark_slot(thing(d, "snack", "obj", det="numeral", rich=0.5), "dish")
    if d.chance(0.7):
        joined(d, food, mark_slot(thing(d, "drink|meal", "conj", det="bare", rich=0.3), "dish"))
    return _request(d, "order.food", food, _restaurant(d, "from"))


@construction(end="?", intent="get_weather")
def get_weather(d: Draw) -> Node:
    """Will it snow in Geneva tomorrow?"""
    verb = d.node(d.entry("verb", "raining").lemma, "root")
    verb.tense = "fut"
    city = _slot(d, "city", "in", location(d, "obl", d.among("city city country")))
    part = d.word(d.among("morning afternoon evening"), "NOUN", "obl", "time").add(
        d.word("the", "DET", "det")
    )
    verb.add(d.word("it", "PRON", "expl"), city, _date(d))
    return asked(verb.add(_slot(d, "part_of_day", "in", part)) if d.chance(0.6) else verb)


@construction(intent="set_alarm")
def set_alarm(d: Draw) -> Node:
    """Set an alarm for 7:45 on Monday."""
    return _request(d, "set.alarm", _one(d, "alarm"), _clock(d, "for"), _date(d))


@construction(intent="play_music")
def play_music(d: Draw) -> Node:
    """Play a sad song by Elena Novak in the kitchen."""
    song = mark_slot(thing(d, "tune", "obj", det="a", rich=0.6), "music_item")
    song.add(_slot(d, "artist", "by", person(d, "nmod", full=1)))
    room = _slot(d, "room", "in", thing(d, "room", "obl", det="the", rich=0))
    return _request(d, "play.music", song, room if d.chance(0.6) else None)


@construction(intent="send_message")
def send_message(d: Draw) -> Node:
    """I want to send a message to Viktor about the meeting."""
    contact = _slot(d, "contact", "to", person(d, "obl", full=0.5))
    topic = _slot(d, "topic", "about", thing(d, "event|topic", "obl", det="the"))
    return _request(d, "send", _one(d, d.among("message letter.mail note.message")), contact, topic)


@construction(intent="buy_ticket")
def buy_ticket(d: Draw) -> Node:
    """Buy two tickets for the concert in Athens."""
    tickets = d.word("ticket", "NOUN", "obj")
    tickets.plural = True
    tickets.add(mark_slot(d.node(d.entry("word", "NUM").lemma, "nummod"), "count"))
    tickets.add(_slot(d, "event", "for", thing(d, "show|contest", "nmod", det="the")))
    city = _slot(d, "city", "in", location(d, "obl"))
    return _request(d, "buy", tickets, city, _date(d) if d.chance(0.7) else None)


@construction(intent="switch_device")
def switch_device(d: Draw) -> Node:
    """Turn off the heater in the bedroom at 9:00."""
    device = mark_slot(thing(d, "device", "obj", det="the", rich=0.15), "device")
    room = _slot(d, "room", "in", thing(d, "room", "obl", det="the"))
    verb = ("turn on", "turn off", "switch on")[int(d.share() * 3)]
    return _request(d, verb, device, room, _clock(d) if d.chance(0.6) else _date(d))


@construction(intent="transfer_money")
def transfer_money(d: Draw) -> Node:
    """Transfer 250 euros to Paula Marin on Tuesday."""
    money = mark_slot(amount(d, d.among("euro pound dollar"), "obj"), "amount")
    recipient = _slot(d, "recipient", "to", person(d, "obl", full=0.6))
    return _request(d, d.among("transfer send pay"), money, recipient, _date(d))


@construction(intent="set_reminder")
def set_reminder(d: Draw) -> Node:
    """Remind me about the interview tomorrow at 10:30."""
    about = _slot(d, "event", "about", thing(d, "event", "obl", det="the", rich=0.5))
    me = pronoun(d, "I", "obj")
    return _request(d, "remind", me, about, _date(d), _clock(d), ways="order order please question")


@construction(0.8, end="?", intent="find_place")
def find_place(d: Draw) -> Node:
    """Where can I find a small bakery in Krakow?"""
    verb = d.word("find", "VERB", "root")
    verb.tense, verb.inverted = "pres", True
    verb.modal = d.word(d.among("can could"), "AUX", "aux")
    with_subject(verb, pronoun(d, "I", "nsubj"))
    sought = mark_slot(thing(d, "eatery|shop|clinic|stage", "obj", det="a", rich=0.6), "place_type")
    verb.add(d.word("where", "ADV", "advmod", "wh"), sought, _slot(d, "city", "in", location(d, "obl")))
    return verb.add(_date(d)) if d.chance(0.5) else verb
